/** The detail of one decision: the summary in full, what it was made from, and what changed in it. */

import {get, threadPath} from './api.js';
import {summaryLabel, tokensLabel} from './compaction_row.js';
import {difference, differenceView} from './differ.js';
import {count, duration, name, plural, signed} from './format.js';
import {button, h, replace} from './h.js';
import {jsonTree, longText} from './json_tree.js';
import {address, ownerAndId} from './route.js';
import {splitter} from './splitter.js';
import {failed, loading} from './states.js';

/** The text of a summary, wherever the answer has it. @param {any} compaction @returns {string | undefined} */
export function summaryText(compaction) {
  return compaction.text ?? compaction.summary?.text;
}

/** A file name of safe characters only. @param {string} thread @param {number} n */
export function fileName(thread, n) {
  return `${ownerAndId(thread).id.replace(/[^A-Za-z0-9._-]+/g, '_').slice(0, 80)}-summary-${n}.md`;
}

/** The pane. */
export class CompactionPane extends HTMLElement {
  #title = h('h2');
  #content = h('div', {class: 'detail-content', tabindex: '0', role: 'region', 'aria-label': 'Decision'});
  #actions;
  #value = null;
  #shown = '';

  /** @param {{close: () => void, copy: (text: string, said: string) => void}} actions */
  build(actions) {
    this.#actions = actions;
    this.className = 'detail wide';
    this.setAttribute('role', 'complementary');
    this.setAttribute('aria-label', 'Decision');
    this.append(
      h('div', {class: 'detail-head'}, this.#title, button('Copy JSON', () => this.copyJson()),
        button('Copy link', () => actions.copy(location.href, 'Link copied')), button('Close', actions.close)),
      this.#content, splitter(this));
    return this;
  }

  /** Copy the decision. */
  copyJson() {
    if (this.#value) this.#actions.copy(JSON.stringify(this.#value, null, 1), 'JSON copied');
  }

  /** @param {string} thread @param {number} n */
  async show(thread, n) {
    const key = `${thread} ${n}`;
    if (key === this.#shown) return;
    this.#shown = key;
    this.#title.textContent = `Compaction ${count(n)}`;
    if (!this.#content.firstChild) replace(this.#content, loading('the decision'));
    try {
      const compaction = await get(threadPath(thread, `/compactions/${n}`));
      const before = summaryText(compaction) && compaction.previous ? await get(threadPath(thread, `/compactions/${compaction.previous}`)) : null;
      const changed = before && summaryText(before) ? await difference(summaryText(before), summaryText(compaction)) : null;
      if (key !== this.#shown) return;
      this.#value = compaction;
      replace(this.#content, this.#facts(thread, compaction), ...this.#summary(thread, compaction, changed));
      this.#content.scrollTop = 0;
    } catch (error) {
      if (key !== this.#shown) return;
      this.#shown = '';
      replace(this.#content, failed('The decision', error, () => this.show(thread, n)));
    }
  }

  #facts(thread, one) {
    const fact = (label, ...value) => [h('dt', null, label), h('dd', null, ...value)];
    const {summary, cut} = one;
    return h('dl', {class: 'facts'},
      fact('result', h('span', {class: one.result === 'failed' ? 'error' : null}, one.result), one.reason ? `: ${name(one.reason, 300)}` : ''),
      one.call !== undefined && fact('call', h('a', {href: address('context', {thread}, {call: one.call, attempt: one.attempt})}, `call ${count(one.call)} in Context`), one.attempt > 1 ? ` · attempt ${one.attempt}` : ''),
      fact('trigger', name(one.trigger, 40), one.because ? ` · ${name(one.because, 120)}` : ''),
      one.by && fact('asked for by', name(one.by, 80)),
      one.focus && fact('focus', name(one.focus, 300)),
      fact('tokens', tokensLabel(one) || 'not recorded'),
      (one.stages ?? []).map((stage) => fact(`stage ${name(stage.stage ?? stage, 20)}`, stageWords(stage))),
      one.covers && fact('covers', `messages ${count(one.covers[0])}–${count(one.covers[1])}`),
      cut && fact('safe cut', `after message ${count(cut.position)}`, cut.why || cut.reason ? ` · ${name(cut.why ?? cut.reason, 300)}` : ''),
      (cut?.rejected ?? []).map((one) => fact('not after', `message ${count(one.position)} · ${name(one.why, 200)}`)),
      summaryLabel(one) && fact('in place of them', summaryLabel(one)),
      one.warnings?.length > 0 && fact('warnings', name(one.warnings.map((warning) => (typeof warning === 'string' ? warning : JSON.stringify(warning))).join(', '), 500)),
      one.health?.failures > 0 && fact('failures', count(one.health.failures)),
      summary && fact('made by', madeBy(summary)),
      fact('entry', h('a', {href: address('timeline', {thread}, {seq: one.seq})}, `seq ${count(one.seq)} in Timeline`)));
  }

  #summary(thread, one, changed) {
    const text = summaryText(one);
    if (!text) return [one.summary && h('p', {class: 'warning'}, 'The text of this summary is not in the store any more.')];
    return [
      h('section', null,
        h('div', {class: 'section-head'}, h('h3', null, `Summary · ${plural(text.length, 'character')}`),
          button('Copy', () => this.#actions.copy(text, 'Summary copied')), button('Download .md', () => download(fileName(thread, one.compaction), text))),
        h('div', {class: 'body', dir: 'auto'}, longText(text))),
      changed && h('section', null, h('h3', null, `Difference to compaction ${count(one.previous)}`), differenceView(changed)),
      one.material && h('p', {class: 'faint'}, `Material: ${one.material.map((range) => (Array.isArray(range) ? `messages ${count(range[0])}–${count(range[1])}` : name(JSON.stringify(range), 80))).join(', ')}${one.summary?.parts ? ` · in ${plural(one.summary.parts, 'part')}` : ''}`),
      one.prompt && folded('The summariser\'s prompt', one.prompt),
    ];
  }
}

customElements.define('bs-compaction', CompactionPane);

function stageWords(stage) {
  const words = [name(stage.status, 20), stage.messages !== undefined && plural(stage.messages, 'message'),
    stage.tokens !== undefined && `${signed(stage.tokens)} tok`, stage.ms !== undefined && duration(stage.ms), name(stage.why, 200)];
  return words.filter(Boolean).join(' · ') || 'ran';
}

function madeBy({model, kind, usage, ms, parts}) {
  const words = [name(model ?? kind, 60), usage && `${count(usage.input_tokens ?? 0)} → ${count(usage.output_tokens ?? 0)} tok`,
    ms !== undefined && duration(ms), parts && `in ${plural(parts, 'part')}`];
  return words.filter(Boolean).join(' · ');
}

function folded(title, value) {
  const box = h('details', null, h('summary', null, title));
  box.addEventListener('toggle', () => {
    if (!box.open || box.childElementCount > 1) return;
    box.append(typeof value === 'string' ? h('div', {class: 'body', dir: 'auto'}, longText(value)) : jsonTree(value, title));
  });
  return box;
}

function download(file, text) {
  const url = URL.createObjectURL(new Blob([text], {type: 'text/markdown;charset=utf-8'}));
  h('a', {href: url, download: file}).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
