// Questions to the person. Each returns a promise of the answer; Esc and Cancel answer null.
import {make} from './elements.js';

let numDialogs = 0;

function ask({title, text, label, value = '', type = 'text', confirm, isDangerous = false}) {
  const id = `dialog-${++numDialogs}`;
  return new Promise((resolve) => {
    const input = label && make('input', {
                    type,
                    id: `${id}-input`,
                    value,
                    autocomplete: 'off',
                    spellcheck: 'false',
                    maxlength: 4096
                  });
    const dialog = make(
        'dialog', {'aria-labelledby': `${id}-title`, 'aria-describedby': text && `${id}-text`},
        make(
            'form', {}, make('h2', {id: `${id}-title`}, title),
            text && make('p', {id: `${id}-text`}, text),
            label &&
                make(
                    'label',
                    {for: `${id}-input`
                    },
                    label),
            input,
            make(
                'div', {class: 'row'},
                make(
                    'button',
                    {type: 'button', class: 'button quiet', on: {click: () => dialog.close()}},
                    'Cancel'),
                make(
                    'button',
                    {type: 'submit', class: `button ${isDangerous ? 'danger' : 'primary'}`},
                    confirm))));
    let answer = null;
    dialog.addEventListener('submit', (event) => {
      event.preventDefault();
      answer = input ? input.value : '';
      dialog.close();
    });
    dialog.addEventListener('close', () => {
      dialog.remove();
      resolve(answer);
    });
    document.body.append(dialog);
    dialog.showModal();
    input?.select();
  });
}

export function askName(name) {
  return ask({title: 'Rename the conversation', label: 'Name', value: name, confirm: 'Rename'});
}

export function askKey(wasWrong) {
  return ask({
    title: wasWrong ? 'The server does not know this key' : 'This server wants a key',
    text: 'Whoever runs the server has it. It is kept until you close this tab, and only this ' +
        'server gets it.',
    label: 'Key',
    type: 'password',
    confirm: 'Use this key',
  });
}

export async function confirmDeleteAll(count) {
  return await ask({
           title: count === 1 ? 'Delete the conversation?' : `Delete all ${count} conversations?`,
           text: 'This cannot be undone. Export them first to keep them in a file.',
           confirm: 'Delete',
           isDangerous: true,
         }) !== null;
}
