// Our WebSocket agent on the official client against /agui, played by a scenario:
// {"urls", "client": "new" | "old", "dialect", "query", "dropAfter", "threadId", "history", "steps"}
import {playAll, readScenario} from './scenario.mjs';
import {webSocketAgent} from './websocket_agent.mjs';

const scenario = readScenario();
const client = await import(scenario.client === 'old' ? 'agui-client-old' : '@ag-ui/client');
const WebSocketAgent = webSocketAgent(client.AbstractAgent);

const agent = new WebSocketAgent({
  threadId: scenario.threadId,
  initialMessages: scenario.history ?? [],
});
agent.urls = scenario.urls.map((url) => `${url}/agui`);
agent.dialect = scenario.dialect ?? 'bare';
agent.query = scenario.query ?? {};
agent.dropAfter = scenario.dropAfter ?? 0;

await playAll(scenario, agent, () => agent.frames);
