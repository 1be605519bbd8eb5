/** Where an entry goes, by family: the numbered rules are in fold.js. Pure. */

/** @typedef {import('./fold.js').Fold} Fold */
/** @typedef {import('./fold.js').Entry} Entry */
/** @typedef {import('./fold.js').Row} Row */

/** Put a flag on a row once. @param {Row} row @param {string} word */
export function flag(row, word) {
  if (!row.flags.includes(word)) row.flags.push(word);
}

/** Take a flag off a row. @param {Row} row @param {string} word */
function unflag(row, word) {
  row.flags = row.flags.filter((other) => other !== word);
}

/** What an entry is about. @param {Entry} entry @returns {string | undefined} */
export function refOf(entry) {
  const body = entry.body ?? {};
  return entry.ref ?? body.toolCallId ?? body.messageId ?? body.stepName ?? body.name;
}

/** The status of a tool row. @param {string | undefined} outcome */
function outcomeStatus(outcome) {
  if (outcome === undefined || outcome === 'ok' || outcome === 'replied') return 'ok';
  return outcome === 'error' || outcome === 'unknown' ? 'error' : 'cancelled';
}

/** The status a run ends with. @param {Entry} entry */
function runStatus(entry) {
  if (entry.type === 'RUN_ERROR') return 'error';
  const outcome = entry.body?.outcome;
  if (outcome?.type === 'cancelled') return 'cancelled';
  return outcome?.type === 'interrupt' || outcome?.pendingToolCallIds?.length ? 'waiting' : 'ok';
}

/** @param {Fold} fold @param {Entry} entry */
function placeRun(fold, entry) {
  const starts = entry.type === 'RUN_STARTED';
  const ends = entry.type === 'RUN_FINISHED' || entry.type === 'RUN_ERROR';
  if (!starts && !ends) return null;
  const run = fold.run(entry);
  const again = starts ? run.row : run.ended;
  const row = run.row ? fold.join(run.row, entry) : fold.open(entry, 'run', 'run', entry.run ?? '');
  if (again) flag(row, 'duplicate');
  else if (!starts && !run.row) flag(row, 'out of order');
  run.row = row;
  if (starts && !again) row.preview = entry.preview ?? '';
  if (!ends || again) return row;
  run.ended = true;
  run.step = undefined;
  if (entry.type === 'RUN_ERROR') row.preview = entry.preview ?? '';
  const status = runStatus(entry);
  fold.closeRun(entry, status);
  return fold.close(row, entry, status);
}

/** @param {Fold} fold @param {Entry} entry */
function placeStep(fold, entry) {
  const name = refOf(entry) ?? '';
  const key = `${entry.run}:${name}`;
  const found = fold.find('step', key);
  if (entry.type === 'STEP_STARTED') {
    const row = found ? fold.join(found, entry) : fold.open(entry, 'step', 'step', name, key);
    if (found) flag(row, 'duplicate');
    else if (fold.runs.has(entry.run)) fold.runs.get(entry.run).step = row;
    return row;
  }
  if (entry.type !== 'STEP_FINISHED') return null;
  const row = found ? fold.join(found, entry) : fold.open(entry, 'step', 'step', name);
  if (!found) flag(row, 'out of order');
  fold.forget('step', key);
  const run = fold.runs.get(entry.run);
  if (run?.step === row) run.step = undefined;
  return fold.close(row, entry, 'ok');
}

const BLOCKS = {
  text: {
    title: 'text message', starts: ['TEXT_MESSAGE_START'], delta: 'TEXT_MESSAGE_CONTENT',
    ends: ['TEXT_MESSAGE_END'], closes: 'TEXT_MESSAGE_END',
  },
  reasoning: {
    title: 'reasoning', starts: ['REASONING_START', 'REASONING_MESSAGE_START'],
    delta: 'REASONING_MESSAGE_CONTENT', ends: ['REASONING_MESSAGE_END', 'REASONING_END'],
    closes: 'REASONING_END',
  },
};

/** @param {Fold} fold @param {Entry} entry @param {'text' | 'reasoning'} family */
function placeBlock(fold, entry, family) {
  const block = BLOCKS[family];
  const starts = block.starts.includes(entry.type);
  const ends = block.ends.includes(entry.type);
  if (!starts && !ends && entry.type !== block.delta) return null;
  const ref = refOf(entry) ?? '';
  const found = fold.find(family, ref);
  const row = found ? fold.join(found, entry) : fold.open(entry, family, block.title, ref, ref);
  if (!found && entry.type !== block.starts[0]) flag(row, 'out of order');
  if (found && entry.type === block.starts[0]) flag(row, 'duplicate');
  if (entry.type === block.delta) fold.delta(row, entry);
  const incomplete = ends && entry.body?.metadata?.backscroll?.incomplete === true;
  if (incomplete) flag(row, 'incomplete');
  if (entry.type !== block.closes) return row;
  fold.forget(family, ref);
  if (found) fold.checkDeltas(row);
  return fold.close(row, entry, row.flags.includes('incomplete') ? 'cancelled' : 'ok');
}

const TOOL_TYPES = ['TOOL_CALL_START', 'TOOL_CALL_ARGS', 'TOOL_CALL_END', 'TOOL_CALL_RESULT'];

/** @param {Fold} fold @param {Entry} entry */
function placeTool(fold, entry) {
  if (!TOOL_TYPES.includes(entry.type)) return null;
  const ref = refOf(entry) ?? '';
  const starts = entry.type === 'TOOL_CALL_START';
  const results = entry.type === 'TOOL_CALL_RESULT';
  const name = starts ? entry.body?.toolCallName ?? entry.preview ?? '' : '';
  const found = fold.find('tool', ref);
  const row = found ? fold.join(found, entry) : fold.open(entry, 'tool', 'tool call', name, ref);
  if (!found && !starts) flag(row, 'out of order');
  if (found && starts) flag(row, 'duplicate');
  if (entry.type === 'TOOL_CALL_ARGS') fold.delta(row, entry);
  if (entry.type === 'TOOL_CALL_END' && found) fold.checkDeltas(row);
  if (!results) return row;
  const wasIncomplete = row.flags.includes('incomplete');
  if (row.status !== 'running' && row.status !== 'waiting' && !wasIncomplete) {
    flag(row, 'duplicate');
    return row;
  }
  unflag(row, 'incomplete');
  return fold.close(row, entry, outcomeStatus(entry.body?.metadata?.backscroll?.outcome));
}

/** @param {Fold} fold @param {Entry} entry */
function placeCall(fold, entry) {
  const ref = refOf(entry) ?? '';
  if (entry.type === 'started') {
    const earlier = fold.find('call', ref);
    if (earlier?.status === 'running') fold.abandon(earlier, entry, 'cancelled');
    const row = fold.open(entry, 'call', 'model call', ref, ref);
    row.preview = entry.preview ?? '';
    return row;
  }
  const status = {finished: 'ok', failed: 'error', cancelled: 'cancelled'}[entry.type];
  if (status === undefined) return null;
  const found = fold.find('call', ref);
  const row = found ? fold.join(found, entry) : fold.open(entry, 'call', 'model call', ref);
  if (!found) flag(row, 'out of order');
  row.preview = [row.preview, entry.preview].filter(Boolean).join(' · ');
  unflag(row, 'incomplete');
  fold.forget('call', ref);
  return fold.close(row, entry, status);
}

const ACTIVITY_STATUS = {running: 'running', failed: 'error', cancelled: 'cancelled'};

/** @param {Fold} fold @param {Entry} entry */
function placeActivity(fold, entry) {
  if (!entry.type.startsWith('ACTIVITY_')) return null;
  const key = `${entry.run}:${refOf(entry) ?? ''}`;
  const found = fold.find('activity', key);
  const row = found ? fold.join(found, entry) : fold.open(entry, 'activity', 'activity', '', key);
  row.subject = entry.body?.activityType ?? row.subject;
  row.preview = entry.preview ?? '';
  const status = ACTIVITY_STATUS[entry.body?.content?.status] ?? 'ok';
  if (status !== 'running') return fold.close(row, entry, status);
  row.ended = undefined;
  row.status = 'running';
  return row;
}

/** @param {Fold} fold @param {Entry} entry */
function placeMessage(fold, entry) {
  const row = fold.plain(entry, 'message');
  row.title = `message ${entry.type}`;
  fold.lend(entry);
  const tool = entry.body?.tool_call_id && fold.find('tool', entry.body.tool_call_id);
  if (tool?.status === 'waiting') fold.close(tool, entry, outcomeStatus(entry.body.outcome));
  return row;
}

const RESULT_STATUS = {failed: 'error', cancelled: 'cancelled'};

/** @param {Fold} fold @param {Entry} entry */
function placeCompaction(fold, entry) {
  const row = fold.plain(entry, 'compaction');
  row.title = entry.type === 'done' ? 'compaction' : `compaction ${entry.type}`;
  row.status = RESULT_STATUS[entry.type] ?? 'ok';
  return row;
}

/** @param {Fold} fold @param {Entry} entry */
function placeNote(fold, entry) {
  const row = fold.plain(entry, 'note');
  row.title = 'note';
  row.subject = entry.type;
  return row;
}

/**
 * One function per family; null means: a row of its own.
 * @type {Record<string, (fold: Fold, entry: Entry) => Row | null>}
 */
export const PLACES = {
  run: placeRun,
  step: placeStep,
  text: (fold, entry) => placeBlock(fold, entry, 'text'),
  reasoning: (fold, entry) => placeBlock(fold, entry, 'reasoning'),
  tool: placeTool,
  call: placeCall,
  activity: placeActivity,
  message: placeMessage,
  compaction: placeCompaction,
  note: placeNote,
};
