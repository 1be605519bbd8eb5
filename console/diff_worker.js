/** Runs the difference beside the page: {id, before, after} in, {id, pieces, by} out. */

import {diff} from './diff.js';

self.addEventListener('message', ({data}) => {
  self.postMessage({id: data.id, ...diff(data.before, data.after)});
});
