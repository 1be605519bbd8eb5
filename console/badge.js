/** What the connection badge says, in words. Pure. */

import {clock, count} from './format.js';

const OFFLINE_MS = 60_000;

/**
 * @param {import('./feed.js').FeedState} feed
 * @param {{paused: boolean, waiting: number}} following entries that wait while following is off
 * @param {number} now
 * @returns {{tone: 'ok' | 'warn' | 'error' | 'quiet', text: string, reload?: boolean}}
 */
export function badge(feed, following, now) {
  if (feed.link === 'refused') return {tone: 'error', text: feed.reason};
  if (feed.link === 'waiting' && now - feed.since > OFFLINE_MS) {
    return {tone: 'error', text: `offline since ${clock(feed.since).slice(0, 5)}`};
  }
  if (feed.link === 'waiting') {
    return {tone: 'warn', text: feed.seq === null ? 'reconnecting' : `reconnecting · last seq ${count(feed.seq)}`};
  }
  if (feed.link === 'connecting') return {tone: 'quiet', text: 'connecting'};
  if (feed.gap) {
    return {tone: 'error', text: `gap · seq ${count(feed.gap[0])}–${count(feed.gap[1])} missing`, reload: true};
  }
  if (feed.thread === null || feed.seq === null) return {tone: 'ok', text: 'live'};
  if (following.paused) return {tone: 'warn', text: `paused · ${count(following.waiting)} new`};
  if (feed.resync !== null) return {tone: 'ok', text: `caught up · deltas up to seq ${count(feed.resync)} removed`};
  const behind = Math.max(0, (feed.head ?? feed.seq) - feed.seq);
  return {tone: 'ok', text: `live · seq ${count(feed.seq)} · ${count(behind)} behind`};
}
