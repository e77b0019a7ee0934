// Shows a block of code, and the same block again when it has grown.
import {copyText, icon, make} from './elements.js';
import {readTokens, UNSETTLED_TOKENS} from './highlight.js';

const COPIED_MS = 1500;

export class CodeView {
  constructor(language) {
    this.language = language;
    this.text = '';
    this.begins = [];  // Of the tokens in the text; each is one node of `code`.
    this.code = make('code');
    this.element = make(
        'figure', {class: 'code', dir: 'ltr'},
        make('figcaption', {}, make('span', {}, language || 'code'), this.makeCopy()),
        make('pre', {tabindex: '0', 'aria-label': `code ${language}`}, this.code));
  }

  makeCopy() {
    const copy = make('button', {type: 'button', class: 'text-button'}, icon('copy'), 'Copy');
    copy.addEventListener('click', async () => {
      const copied = await copyText(this.text);
      copy.replaceChildren(icon(copied ? 'check' : 'close'), copied ? 'Copied' : 'Not copied');
      setTimeout(() => copy.replaceChildren(icon('copy'), 'Copy'), COPIED_MS);
    });
    return copy;
  }

  // Whether `block` is this one with more text.
  isBeginOf(block) {
    return block.type === 'code' && block.language === this.language &&
        block.text.startsWith(this.text);
  }

  update(text) {
    const settled =
        text.startsWith(this.text) ? Math.max(0, this.begins.length - UNSETTLED_TOKENS) : 0;
    const at = this.begins[settled] ?? 0;
    this.begins.length = settled;
    while (this.code.childNodes.length > settled) this.code.lastChild.remove();
    for (const token of readTokens(this.language, text, at)) {
      this.begins.push(token.begin);
      this.code.append(
          token.kind ? make('span', {class: `code-${token.kind}`}, token.text) :
                       document.createTextNode(token.text));
    }
    this.text = text;
  }
}
