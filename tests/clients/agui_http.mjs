// HttpAgent of the official client against POST /agui, played by a scenario:
// {"url", "client": "new" | "old", "threadId", "history": [], "steps": [{"do": "run", ...}]}
import {takeWhile} from 'rxjs';
import {playAll, readScenario} from './scenario.mjs';

const scenario = readScenario();
const {HttpAgent} = await import(scenario.client === 'old' ? 'agui-client-old' : '@ag-ui/client');

const answers = [];

/** Keep what the server sends, as it comes. */
async function keep(answer) {
  const kept = {status: answer.status, text: ''};
  answers.push(kept);
  for await (const piece of answer.body.pipeThrough(new TextDecoderStream())) kept.text += piece;
}

/** Fetch, keep a copy of the answer, and send nonsense instead when a step asks for it. */
async function fetchAndKeep(url, request) {
  const body = agent.instead ?? request.body;
  agent.instead = undefined;
  const answer = await fetch(url, {...request, body});
  keep(answer.clone()).catch(() => {}); // a watch is cut off by its reader
  return answer;
}

const agent = new HttpAgent({
  url: `${scenario.url}/agui`,
  threadId: scenario.threadId,
  initialMessages: scenario.history ?? [],
  fetch: fetchAndKeep,
});
if (scenario.client === 'old') agent.fetch = fetchAndKeep;

/** Load the thread's history by GET, as an application's own `connect` would. */
agent.connect = (input) => {
  const watching = new HttpAgent({
    url: `${scenario.url}/agui?threadId=${encodeURIComponent(input.threadId)}`,
    fetch: (url, {headers, signal}) => fetchAndKeep(url, {headers, signal}),
  });
  return untilTerminal(watching.run(input));
};

/** End with the first terminal event: a watched thread itself never ends. */
function untilTerminal(events) {
  return events.pipe(takeWhile(({type}) => !['RUN_FINISHED', 'RUN_ERROR'].includes(type), true));
}

await playAll(scenario, agent, () => answers);
