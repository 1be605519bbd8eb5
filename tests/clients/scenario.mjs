// Play a scenario with a real AG-UI client and say in JSON what the client made of it.
import {readFileSync} from 'node:fs';

/** Read the scenario: the first argument, or standard input when there is none.
 * @returns {object} */
export function readScenario() {
  return JSON.parse(process.argv[2] ?? readFileSync(0, 'utf8'));
}

/** Collect what the client complains about instead of printing it.
 * @returns {string[]} */
function captureConsole() {
  const complaints = [];
  const keep = (...words) => complaints.push(words.map(String).join(' '));
  for (const level of ['log', 'info', 'warn', 'error']) console[level] = keep;
  return complaints;
}

/** Do one step and report it.
 * @param {object} agent @param {object} step */
async function play(agent, step) {
  const report = {do: step.do, runId: step.runId, events: [], errors: []};
  const watcher = {
    onEvent: ({event}) => void report.events.push(event),
    onRunFailed: ({error}) => void report.errors.push(error.message),
    onRunFinishedEvent: (told) => {
      report.outcome = told.outcome;
      report.pending = told.pendingToolCallIds;
    },
  };
  for (const message of step.messages ?? []) agent.addMessage(message);
  if (step.keep !== undefined) agent.setMessages(agent.messages.slice(0, step.keep));
  if (step.state !== undefined) agent.setState(step.state);
  agent.instead = step.instead;
  const {runId, tools, context, forwardedProps, resume} = step;
  const run = step.do === 'connect' ? agent.connectAgent : agent.runAgent;
  try {
    const parameters = {runId, tools, context, forwardedProps, resume};
    const {result, newMessages} = await run.call(agent, parameters, watcher);
    Object.assign(report, {result, newMessages});
  } catch (error) {
    report.thrown = error.message;
  }
  report.messages = structuredClone(agent.messages);
  return report;
}

/** Play every step of the scenario, print what the client holds, and leave open sockets behind.
 * @param {object} scenario @param {object} agent @param {() => unknown[]} wire what was received */
export async function playAll(scenario, agent, wire) {
  const complaints = captureConsole();
  const steps = [];
  for (const step of scenario.steps) steps.push(await play(agent, step));
  const {messages, state, pendingInterrupts} = agent;
  const told = {steps, messages, state, pendingInterrupts, complaints, wire: wire()};
  process.stdout.write(JSON.stringify(told) + '\n', () => process.exit());
}
