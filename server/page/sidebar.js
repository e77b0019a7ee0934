// The list of conversations.
import {icon, iconButton, make} from './elements.js';
import {markParts} from './search.js';

const marked = (text, pattern) => pattern ?
    markParts(pattern, text).map((part) => part.isMatch ? make('mark', {}, part.text) : part.text) :
    text;

export class Sidebar {
  // `actions`: open(id, message), where the message may be undefined, rename(id), remove(id),
  // exportOne(id).
  constructor(list, actions) {
    this.list = list;
    this.actions = actions;
  }

  // `found` are {conversation, message, excerpt}, of which what matches `pattern` is marked; the
  // last two may be undefined.
  show(found, openId, isRunning, pattern) {
    const focused =
        this.list.contains(document.activeElement) ? document.activeElement.dataset.focus : null;
    this.list.replaceChildren(...found.map((each) => {
      const {id} = each.conversation;
      return this.makeItem(each, id === openId, isRunning(id), pattern);
    }));
    if (!found.length) {
      this.list.append(make(
          'li', {class: 'hint'},
          pattern ? 'Nothing was found.' :
                    'Conversations are kept in this browser, and nowhere else.'));
    }
    if (focused) this.list.querySelector(`[data-focus="${CSS.escape(focused)}"]`)?.focus();
  }

  openFirst() {
    this.list.querySelector('.conversation')?.click();
  }

  makeItem({conversation: {id, title}, message, excerpt}, isOpen, isRunning, pattern) {
    const name = title || 'New conversation';
    const button = (what, label, action) =>
        iconButton(what, label, () => action(id), {'data-focus': `${what} ${id}`});
    return make(
        'li', {class: isOpen ? 'open' : undefined},
        make(
            'button', {
              type: 'button',
              class: 'conversation',
              'data-focus': `open ${id}`,
              title: name,
              'aria-current': isOpen ? 'true' : undefined,
              on: {click: () => this.actions.open(id, message)}
            },
            make(
                'span', {class: 'texts'},
                make('span', {class: 'title', dir: 'auto'}, marked(name, pattern)),
                excerpt && make('small', {dir: 'auto'}, marked(excerpt, pattern))),
            isRunning ? make('span', {class: 'working', role: 'img', 'aria-label': 'answering'}) :
                        null),
        make(
            'span', {class: 'item-actions'},
            button('pencil', `Rename “${name}”`, this.actions.rename),
            button('export', `Export “${name}”`, this.actions.exportOne),
            button('trash', `Delete “${name}”`, this.actions.remove)));
  }
}

// What can be undone, or must be known, in one line at the bottom. `action`: {label, run}.
export class Notice {
  constructor(element) {
    this.element = element;
  }

  show(text, action) {
    const close = () => {
      this.element.hidden = true;
      this.element.replaceChildren();
    };
    this.element.replaceChildren(make('span', {}, text));
    if (action) {
      this.element.append(make(
          'button', {
            type: 'button',
            class: 'button',
            on: {
              click: () => {
                close();
                action.run();
              }
            }
          },
          action.label));
    }
    this.element.append(iconButton('close', 'Close this notice', close));
    this.element.hidden = false;
  }
}

export function fillIcons(root) {
  for (const element of root.querySelectorAll('[data-icon]'))
    element.prepend(icon(element.dataset.icon));
}
