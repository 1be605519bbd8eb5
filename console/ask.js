/** A dialog that says what a button will do, and does it only when told so. */

import {button, h, replace} from './h.js';

/**
 * Ask before acting. The dialog stays open, with the reason, when the action fails.
 * @param {{title: string, says: string[], label: string, field?: string, act: (text: string) => Promise<any>}} question
 * @returns {Promise<boolean>} whether it was done
 */
export function ask({title, says, label, field, act}) {
  const opener = document.activeElement;
  const input = field ? h('input', {type: 'text', autocomplete: 'off', maxlength: '2000'}) : null;
  const problem = h('p', {class: 'error', role: 'alert'});
  return new Promise((resolve) => {
    let done = false;
    const go = button(label, async () => {
      go.disabled = true;
      replace(problem);
      try {
        await act(input?.value.trim() ?? '');
        done = true;
        dialog.close();
      } catch (error) {
        replace(problem, error.message);
        go.disabled = false;
      }
    }, {class: 'primary'});
    const dialog = h('dialog', {class: 'ask', 'aria-labelledby': 'ask-title'},
      h('div', {class: 'dialog-head'}, h('h2', {id: 'ask-title'}, title)),
      says.map((line) => h('p', null, line)),
      input && h('label', {class: 'choice'}, `${field} `, input),
      problem,
      h('div', {class: 'dialog-foot'}, go, button('Cancel', () => dialog.close())));
    dialog.addEventListener('close', () => {
      dialog.remove();
      opener?.focus?.();
      resolve(done);
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}
