// The files that the next message takes along, as chips above it.
import {readTextFile, sizeOf, tooLong} from './attachments.js';
import {formatBytes} from './bytes.js';
import {icon, iconButton, make} from './elements.js';

// A file's name and size, with what else is known of it.
export function fileChip({name, text, tokens}, remove) {
  const size = formatBytes(sizeOf(text)) +
      (tokens ? ` · ${tokens.toLocaleString('en')} ${tokens === 1 ? 'token' : 'tokens'}` : '');
  return make(
      'li', {class: 'chip'}, icon('file'), make('span', {class: 'chip-name', dir: 'auto'}, name),
      make('small', {}, size), remove && iconButton('close', `Remove “${name}”`, remove));
}

export class AttachmentTray {
  // `actions`: count(text), a promise of the number of tokens; room(), {taken, context} in tokens;
  // say(sentence); removed(), when the person removed one; changed().
  constructor({list, button, input, target}, actions) {
    Object.assign(this, {list, target, actions});
    this.files = [];
    button.addEventListener('click', () => input.click());
    input.addEventListener('change', () => {
      const files = [...input.files];
      input.value = '';
      this.add(files);
    });
    this.connectDrop();
    this.show();
  }

  connectDrop() {
    const hasFiles = (event) => event.dataTransfer?.types.includes('Files');
    const mark = (isOver) => this.target.classList.toggle('drop', isOver);
    // Over the whole page, so that a file beside the target does not replace the page.
    addEventListener('dragover', (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      mark(true);
    });
    addEventListener('dragleave', (event) => !event.relatedTarget && mark(false));
    addEventListener('drop', (event) => {
      mark(false);
      if (!hasFiles(event)) return;
      event.preventDefault();
      this.add([...event.dataTransfer.files]);
    });
  }

  get bytes() {
    return this.files.reduce((sum, {text}) => sum + sizeOf(text), 0);
  }

  get tokens() {
    return this.files.reduce((sum, {tokens = 0}) => sum + tokens, 0);
  }

  async add(files) {
    const problems = [];
    for (const file of files) {
      try {
        const added = {name: file.name, text: await readTextFile(file, this.bytes)};
        this.files.push(added);
        this.show();
        const problem = await this.count(added);
        if (problem) {
          this.remove(added);
          problems.push(problem);
        }
      } catch (error) {
        problems.push(error.message);
      }
    }
    if (problems.length) this.actions.say(problems.join(' '));
  }

  // The sentence by which a file is refused, if it is. If the server does not count, it is the
  // server that refuses the message.
  async count(added) {
    let tokens;
    try {
      tokens = await this.actions.count(added.text);
    } catch {
      return '';
    }
    const {taken, context} = this.actions.room();
    const problem = tooLong(added.name, tokens, taken + this.tokens, context);
    if (!problem) added.tokens = tokens;
    this.show();
    return problem;
  }

  remove(file) {
    this.files = this.files.filter((each) => each !== file);
    this.show();
  }

  // Gives the files away, as {name, text}.
  take() {
    const taken = this.files.map(({name, text}) => ({name, text}));
    this.files = [];
    this.show();
    return taken;
  }

  show() {
    this.list.hidden = !this.files.length;
    this.list.replaceChildren(...this.files.map((file) => fileChip(file, () => {
                                                  this.remove(file);
                                                  this.actions.removed();
                                                })));
    this.actions.changed();
  }
}
