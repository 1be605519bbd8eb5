// A WebSocket agent for the official AG-UI client, as an application would write one.
import {Observable} from 'rxjs';
import WebSocket from 'ws';

const TERMINAL = new Set(['RUN_FINISHED', 'RUN_ERROR']);

/** Make the agent class on either generation of the client.
 * @param {Function} AbstractAgent the client's own base class */
export function webSocketAgent(AbstractAgent) {
  return class WebSocketAgent extends AbstractAgent {
    /** Addresses of workers; the next one is used after each lost socket. */
    urls = [];
    /** `bare` or `durable`. */
    dialect = 'bare';
    /** What is added to every address. */
    query = {};
    /** Text to send instead of the next request: how tests speak nonsense. */
    instead;
    /** Cut the socket after so many logged events, once: how tests lose a connection. */
    dropAfter = 0;
    /** Every frame received, as it came. */
    frames = [];
    #talk;

    /** Run on the agent's one conversation socket; durable runs survive a lost socket. */
    run(input) {
      const request = this.instead ?? JSON.stringify(input);
      this.instead = undefined;
      if (this.dialect === 'durable') return this.#resuming(input, request);
      return new Observable((out) => this.#exchange(request, input.runId, out));
    }

    /** Join the thread: its history, then its live run, up to the next terminal event. */
    connect(input) {
      return this.#resuming(input);
    }

    #exchange(request, runId, out) {
      const socket = (this.#talk ??= this.#open(this.query));
      const onMessage = (data) => {
        const event = this.#read(data);
        out.next(event);
        if (TERMINAL.has(event.type) && (event.runId ?? runId) === runId) out.complete();
      };
      const onClose = (code, why) => out.error(new Error(`closed early: ${code} ${why}`));
      const send = () => socket.send(request);
      socket.on('message', onMessage).on('close', onClose);
      if (socket.readyState === WebSocket.OPEN) send();
      else socket.once('open', send);
      return () => socket.off('message', onMessage).off('close', onClose).off('open', send);
    }

    #resuming(input, request) {
      return new Observable((out) => {
        let socket;
        let cursor;
        let logged = 0;
        let ended = false;
        const open = () => {
          const place = request && !cursor ? {} : {threadId: input.threadId};
          const from = cursor ? {offset: cursor} : {};
          socket = this.#open({dialect: this.dialect, ...this.query, ...place, ...from});
          if (request && !cursor) socket.once('open', () => socket.send(request));
          socket.on('message', onMessage).on('close', onClose);
        };
        const onMessage = (data) => {
          const frame = this.#read(data);
          if (frame.type === 'ping') return;
          if (frame.type === 'resync' || frame.type === 'refusal') {
            out.error(new Error(`${frame.type}: ${JSON.stringify(frame)}`));
            return;
          }
          const event = frame.chunk ?? frame;
          if (frame.id) cursor = frame.id;
          out.next(event);
          if (TERMINAL.has(event.type)) out.complete();
          else if (frame.id && ++logged === this.dropAfter) socket.terminate();
        };
        const onClose = (code, why) => {
          if (ended) return;
          if (cursor) open();
          else out.error(new Error(`closed early: ${code} ${why}`));
        };
        open();
        return () => {
          ended = true;
          socket.close();
        };
      });
    }

    #open(query) {
      const address = new URL(this.urls[0]);
      this.urls.push(this.urls.shift());
      for (const [name, value] of Object.entries(query)) address.searchParams.set(name, value);
      return new WebSocket(address).on('error', () => {}); // a close follows every error
    }

    #read(data) {
      this.frames.push(String(data));
      return JSON.parse(String(data));
    }
  };
}
