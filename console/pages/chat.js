/** Try it: does the agent do what I think? A client of /agui like any other. */

import {AguiClient, newId} from '../agui.js';
import {get, threadPath} from '../api.js';
import '../chat_items.js';
import {count, name, plural} from '../format.js';
import {button, h, perFrame, replace, say} from '../h.js';
import '../live_rows.js';
import {address, keyOf, ownerAndId} from '../route.js';
import {ThreadQuestions} from '../thread_questions.js';

const SHOWN = 100;
const TWICE_MS = 1000;

/** The page element. */
class ChatPage extends HTMLElement {
  #app;
  #client = null;
  #questions = null;
  #key = null;                   // thread key, once there is a thread
  #calls = new Map();            // message id -> call number
  #elements = new Map();         // item id -> element
  #shown = SHOWN;
  #atEnd = true;
  #escaped = -Infinity;
  #wasRunning = false;
  #ends = 0;                     // runs that were heard to end: one may begin and end within a frame
  #callsRead = false;
  #about = h('div', {class: 'chat-head'});
  #earlier = button('', () => this.#more(), {hidden: true});
  #items = h('div', {class: 'chat-items'});
  #scroll = h('div', {class: 'chat-scroll', tabindex: '0', role: 'region', 'aria-label': 'Conversation'},
    h('div', {class: 'chat-column'}, this.#earlier, this.#items));
  #field = h('textarea', {rows: '3', 'aria-label': 'Message', 'aria-describedby': 'chat-problem', placeholder: 'Message', dir: 'auto'});
  #send = h('button', {type: 'submit', class: 'primary'}, 'Send');
  #stop = button('Stop', () => this.#client?.stop(), {hidden: true, class: 'stop'});
  #again = button('Answer again', () => this.#answerAgain(), {hidden: true});
  #problem = h('p', {id: 'chat-problem', class: 'problem', role: 'alert'});
  #agent = h('select', {'aria-label': 'Agent'});
  #rows = h('bs-live-rows');
  #draw = perFrame(() => this.#render());

  /** @param {import('../main.js').App} app @param {import('../route.js').Route} route */
  start(app, route) {
    this.#app = app;
    const composer = h('form', {class: 'composer', on: {submit: (event) => this.#submitted(event)}}, h('div', {class: 'chat-column'}, this.#field,
      h('div', {class: 'composer-row'}, this.#send, this.#stop, this.#again, h('span', {class: 'faint composer-hint'}, 'Enter sends, Shift+Enter breaks the line')),
      this.#problem));
    this.append(h('h1', {class: 'unseen'}, 'Try it'), this.#about,
      h('div', {class: 'split'}, h('div', {class: 'fill chat'}, this.#scroll, composer), this.#rows.build(app)));
    this.#field.addEventListener('keydown', (event) => this.#typed(event));
    this.#scroll.addEventListener('scroll', () => { this.#atEnd = this.#scroll.scrollHeight - this.#scroll.scrollTop - this.#scroll.clientHeight < 24; }, {passive: true});
    app.frame.status.keys([['Enter', 'send'], ['Esc', 'twice: stop'], ['?', 'keys']]);
    this.#readAgents();
    if (route.thread) this.#connect(route.thread);
    else this.#render();
    this.#field.focus();
  }

  disconnectedCallback() {
    this.#client?.close();
    this.#questions?.close();
  }

  /** Nothing in the address but the thread. */
  change() {}

  /** @param {string} action */
  act(action) {
    if (action !== 'close') return this.#rows.list.isConnected && this.#rows.list.contains(document.activeElement) && this.#rows.list.act(action);
    const now = performance.now();
    if (now - this.#escaped < TWICE_MS) this.#client?.stop();
    this.#escaped = now;
    return true;
  }

  async #readAgents() {
    try {
      const {agents = []} = await get('/session');
      replace(this.#agent, agents.map((agent) => h('option', {value: agent}, name(agent, 60))));
    } catch {
      replace(this.#agent, h('option', {value: ''}, 'default'));
    }
    this.#draw();
  }

  #connect(key) {
    const {owner, id} = ownerAndId(key);
    this.#key = key;
    if (owner !== 'local') {
      replace(this.#problem, `This thread belongs to ${name(owner, 60)}; only its owner can write to it. `, h('a', {href: address('timeline', {thread: key})}, 'Open its Timeline'));
      this.#send.disabled = true;
      return;
    }
    const agent = this.#agent.options.length > 1 ? this.#agent.value : null;
    this.#client = new AguiClient({
      threadId: id, agent, changed: () => this.#draw(), refused: (error, sent) => this.#refused(error, sent), answered: (notice) => this.#questions.answered(notice),
    });
    this.#questions = new ThreadQuestions({key, feed: this.#app.feed, send: (answer) => this.#client.answer(answer), changed: () => this.#questionsChanged()});
    this.#client.open();
  }

  #typed(event) {
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    event.target.form.requestSubmit();
  }

  #submitted(event) {
    event.preventDefault();
    const text = this.#field.value;
    if (!text.trim() || this.#send.disabled) return;
    replace(this.#problem);
    if (!this.#client) {
      const key = keyOf(newId('chat'));
      this.#app.become(address('chat', {thread: key}));
      this.#connect(key);
    }
    this.#client.send(text);
    this.#field.value = '';
    this.#atEnd = true;
  }

  #answerAgain() {
    const last = this.#client.conversation.items.findLast((item) => item.kind === 'user');
    if (last) this.#client.answerAgain(last.id, last.text);
  }

  /** Cards that somebody is asked about look different now. */
  #questionsChanged() {
    for (const item of this.#client.conversation.items) {
      if (item.calls?.some((call) => this.#questions.of(call))) this.#client.conversation.changed.add(item.id);
    }
    this.#draw();
  }

  #refused(error, sent) {
    if (this.#questions.refused(error)) return;
    if (sent && !this.#field.value) this.#field.value = sent.text;
    const run = error.details?.runId ? ` The text stays here; send it again when run ${name(error.details.runId, 60)} has ended.` : '';
    replace(this.#problem, h('code', null, name(error.code, 60)), ` ${name(error.message, 500)}${run}`);
    this.#draw();
  }

  #more() {
    this.#shown += SHOWN;
    const before = this.#scroll.scrollHeight;
    this.#client.conversation.moved = true;
    this.#render();
    this.#scroll.scrollTop += this.#scroll.scrollHeight - before;
  }

  #render() {
    const client = this.#client;
    const running = client?.conversation.run ?? null;
    this.#head(client, running);
    this.#stop.hidden = running === null;
    this.#stop.disabled = Boolean(client?.stopping);
    say(this.#stop, client?.stopping ? 'stopping' : 'Stop');
    if (!client) {
      if (!this.#items.firstChild) this.#items.append(h('p', {class: 'chat-empty faint'}, 'A new conversation begins with your first message.'));
      return;
    }
    const items = this.#visible(client);
    this.#again.hidden = running !== null || !items.some((item) => item.kind === 'user') || client.sending.length > 0;
    this.#place(items, client);
    if (this.#atEnd) this.#scroll.scrollTop = this.#scroll.scrollHeight;
    if (client.conversation.items.length) this.#rows.show(this.#key);
    this.#ended(client, running);
    this.#app.frame.status.counts(plural(client.conversation.items.filter((item) => item.kind === 'user' || item.kind === 'assistant').length, 'message'));
  }

  #head(client, running) {
    const link = {connecting: 'connecting', waiting: 'reconnecting', open: 'connected', closed: 'closed'}[client?.link] ?? 'not connected';
    const state = client?.stopping ? 'stopping' : running ? `running ${name(running, 40)}` : 'idle';
    const choice = this.#agent.options.length > 1 && !client ? h('label', null, 'agent ', this.#agent) : h('span', null, `agent ${name(this.#agent.value || 'default', 40)}`);
    const text = [this.#key && ownerAndId(this.#key).id, state, link, client?.cursor && `cursor ${client.cursor}`].filter(Boolean);
    const key = `${choice.tagName} ${this.#agent.value} ${text.join(' ')}`;
    if (this.#about.dataset.key === key) return;
    this.#about.dataset.key = key;
    replace(this.#about, choice, text.map((part, index) => h('span', {class: index === 0 && this.#key ? 'mono' : null}, name(part, 120))),
      this.#key && h('a', {href: address('timeline', {thread: this.#key})}, 'Timeline'), this.#key && h('a', {href: address('context', {thread: this.#key})}, 'Context'));
  }

  #visible({conversation, sending}) {
    const waiting = sending.map(({id, text}) => ({id, kind: 'user', text, status: 'not sent'}));
    const all = [...conversation.items, ...waiting];
    const left = Math.max(0, all.length - this.#shown);
    this.#earlier.hidden = !left;
    say(this.#earlier, `Show ${count(Math.min(left, SHOWN))} earlier, of ${count(left)}`);
    return all.slice(left);
  }

  #place(items, {conversation}) {
    const links = {
      timeline: (item) => address('timeline', {thread: this.#key}, {m: item.id}),
      question: (call) => this.#questions.of(call),
      context: (item) => (this.#calls.has(item.id) ? address('context', {thread: this.#key}, {call: this.#calls.get(item.id), m: item.id}) : null),
    };
    const old = this.#elements;
    this.#elements = new Map(items.map((item) => [item.id, old.get(item.id) ?? h('bs-chat-item')]));
    for (const item of items) {
      const sending = item.status === 'not sent';
      if (!old.has(item.id) || conversation.changed.has(item.id) || sending) this.#elements.get(item.id).show(item, links);
    }
    conversation.changed.clear();
    const wanted = [...this.#elements.values()];
    if (wanted.length !== this.#items.childNodes.length || wanted.some((element, index) => element !== this.#items.childNodes[index])) {
      this.#items.replaceChildren(...wanted);
    }
  }

  #ended({conversation}, running) {
    const known = conversation.items.some((item) => item.kind === 'assistant');
    if (running === null && known && !this.#callsRead) this.#readCalls();
    const isOver = running === null && (this.#wasRunning || conversation.ends !== this.#ends);
    this.#wasRunning = running !== null;
    if (!isOver) return;
    this.#ends = conversation.ends;
    const asked = conversation.items.findLastIndex((item) => item.kind === 'user');
    const calls = conversation.items.slice(asked + 1).reduce((sum, item) => sum + (item.calls?.length ?? 0), 0);
    this.#app.frame.status.announce(`answer complete, ${plural(calls, 'tool call')}`);
    this.#readCalls();
  }

  async #readCalls() {
    this.#callsRead = true;
    try {
      const {calls} = await get(threadPath(this.#key, '/calls'));
      for (const {message, call} of calls) if (message) this.#calls.set(message, call);
      for (const id of this.#calls.keys()) this.#client.conversation.changed.add(id);
      this.#draw();
    } catch {
      // Without calls the messages have no link to Context; a thread not begun has none.
    }
  }
}

customElements.define('bs-chat-page', ChatPage);

/** The page, not started yet. */
export const create = () => h('bs-chat-page');
