// Shows one message with what can be done with it.
import {explain} from './api.js';
import {fileChip} from './attachment_tray.js';
import {copyText, icon, iconButton, make, relabel} from './elements.js';
import {formatRate, formatSeconds, plural} from './figures_view.js';
import {MarkdownView} from './markdown.js';

const COPIED_MS = 1500;

const NOTES = {
  length: 'The answer ended at its longest length, or because the context is full.',
  stopped: 'Stopped.',
  unfinished: 'This answer was interrupted when its page was closed.',
  failed: 'This answer did not arrive as a whole.',
  edited: 'Edited by you.',
};

// What an answer took, in parts; `perSecond` is how a screen reader or the page says it.
export function figuresText(figures, perSecond) {
  const {prompt_tokens: prompt, cached_tokens: cached = 0, tokens_per_second: speed} = figures;
  const tokens = (figures.tokens ?? 0) + (figures.earlier_tokens ?? 0);
  const first = figures.first_token_seconds;
  return [
    tokens && plural(tokens, 'token', 'tokens'),
    speed && `${formatRate(speed)} ${perSecond}`,
    first && `first after ${formatSeconds(first)}`,
    prompt && `${cached} of ${plural(prompt, 'prompt token', 'prompt tokens')} reused`,
  ].filter(Boolean);
}

export class MessageView {
  // `actions`: edit(message, text), goOn(message), regenerate(message), choose(message),
  // askKey(message), mayAnswer().
  constructor(message, actions) {
    this.message = message;
    this.actions = actions;
    this.isUser = message.role === 'user';
    this.text = make('div', {class: 'text'});
    this.markdown = new MarkdownView(this.text);
    this.note = make('div', {class: 'note'});
    this.footer = make('footer', {class: 'actions'});
    this.heading = make('h2', {class: this.isUser ? 'unseen' : 'author'});
    this.element =
        make('article', {class: `message ${message.role}`, 'data-id': message.id}, this.heading);
    if (!this.isUser) this.makeReasoning();
    if (message.files) {
      this.element.append(make(
          'ul', {class: 'files', 'aria-label': 'Attached files'},
          message.files.map((file) => fileChip(file))));
    }
    this.element.append(this.text, this.note, this.footer);
  }

  makeReasoning() {
    this.reasoningText = make('div', {class: 'text'});
    this.reasoningMarkdown = new MarkdownView(this.reasoningText);
    this.summary = make('summary');
    this.reasoning = make(
        'details', {class: 'reasoning', hidden: true, on: {toggle: () => this.showReasoning()}},
        this.summary, this.reasoningText);
    this.element.append(this.reasoning);
  }

  showReasoning() {
    const {reasoning = '', content} = this.message;
    const isThinking = this.answer?.isRunning && !content;
    this.reasoning.hidden = !reasoning;
    const summary = isThinking ? 'Thinking…' : 'Thoughts';
    if (this.summary.textContent !== summary) this.summary.textContent = summary;
    this.summary.classList.toggle('working', Boolean(isThinking));
    if (this.reasoning.open) this.reasoningMarkdown.update(reasoning);
  }

  // `versions`: {index, count, previous, next} among the messages at this place, and the `author`
  // of an answer that does not say it. `answer` is given while this one arrives, and after an
  // error.
  update(versions, answer) {
    this.answer = answer;
    const isRunning = Boolean(answer?.isRunning);
    this.element.setAttribute('aria-busy', String(isRunning));
    const author = this.isUser ? 'You' : this.message.model || versions.author;
    if (this.heading.textContent !== author) this.heading.textContent = author;
    if (!this.editor) this.markdown.update(this.message.content);
    if (!this.isUser) this.showReasoning();
    this.showNote(isRunning);
    const state = JSON.stringify([
      versions.index, versions.count, isRunning, this.message.end,
      isRunning ? 0 : this.message.figures
    ]);
    if (state !== this.state) {
      this.state = state;
      const hadFocus = this.footer.contains(document.activeElement) ? document.activeElement : null;
      this.footer.replaceChildren(...this.makeActions(versions, isRunning));
      const label = hadFocus?.getAttribute('aria-label');
      if (label) this.footer.querySelector(`[aria-label="${CSS.escape(label)}"]`)?.focus();
    }
  }

  showNote(isRunning) {
    const {end, content} = this.message;
    this.note.classList.toggle('error', Boolean(this.answer?.error));
    if (isRunning) {
      this.note.dataset.state = '';
      if (this.answer.tokens) return this.note.replaceChildren();
      const seconds = Math.floor(this.answer.secondsSoFar());
      const text = seconds < 3 ? 'Reading…' : `Reading… ${seconds} s`;
      if (!this.waiting?.isConnected) {
        this.waiting = make('span', {class: 'working'});
        this.note.replaceChildren(this.waiting);
      }
      if (this.waiting.textContent !== text) this.waiting.textContent = text;
      return undefined;
    }
    if (this.answer?.error) return this.showError(this.answer.error);
    const isEmpty = this.message.role === 'assistant' && end === 'stop' && !content;
    const note = isEmpty ? 'The model answered with nothing.' : NOTES[end];
    const goOn = content && note ? this.makeGoOn() : null;
    const state = JSON.stringify([note, Boolean(goOn)]);
    if (state === this.note.dataset.state && this.note.childNodes.length) return undefined;
    this.note.dataset.state = state;
    return this.note.replaceChildren(...[note && make('span', {}, note), goOn].filter(Boolean));
  }

  makeGoOn() {
    return make(
        'button',
        {type: 'button', class: 'button small', on: {click: () => this.actions.goOn(this.message)}},
        'Continue');
  }

  showError(error) {
    if (this.shownError === error && this.note.childNodes.length) return;
    this.shownError = error;
    this.note.dataset.state = '';
    const {text, wantsKey} = explain(error);
    const again = make(
        'button', {
          type: 'button',
          class: 'button',
          on: {
            click: () =>
                wantsKey ? this.actions.askKey(this.message) : this.actions.regenerate(this.message)
          }
        },
        wantsKey ? 'Enter the key' : 'Try again');
    // What had arrived may be continued, unless the same would be in the way.
    const mayGoOn = this.message.content && !wantsKey;
    this.note.replaceChildren(
        ...[make('p', {role: 'alert'}, text), mayGoOn && this.makeGoOn(), again].filter(Boolean));
  }

  makeActions(versions, isRunning) {
    const buttons = [];
    if (versions.count > 1) buttons.push(this.makeVersions(versions, isRunning));
    if (isRunning) return buttons;
    const {content, role, figures} = this.message;
    if (content) {
      const copy = iconButton('copy', 'Copy this message', async () => {
        relabel(copy, await copyText(content) ? 'check' : 'close', 'Copy this message');
        setTimeout(() => relabel(copy, 'copy', 'Copy this message'), COPIED_MS);
      });
      buttons.push(copy);
    }
    if (role === 'user' || content) {
      buttons.push(iconButton('pencil', this.editLabel(), () => this.edit()));
    }
    if (role !== 'user') {
      // An error has a button of its own for this.
      if (!this.answer?.error) {
        buttons.push(
            iconButton('regenerate', 'Answer again', () => this.actions.regenerate(this.message)));
      }
      if (figures) {
        buttons.push(
            make('span', {class: 'figures-line'}, figuresText(figures, 'tokens/s').join(' · ')));
      }
    }
    return buttons;
  }

  makeVersions({index, count, previous, next}, isRunning) {
    const what = this.isUser ? 'message' : 'answer';
    const move = (name, label, target) => iconButton(
        name, label, () => this.actions.choose(target), {disabled: !target || isRunning});
    return make(
        'span', {class: 'versions'}, move('left', `Earlier ${what}`, previous),
        make(
            'span', {'aria-label': `${what} ${index + 1} of ${count}`, role: 'img'},
            `${index + 1}/${count}`),
        move('right', `Later ${what}`, next));
  }

  editLabel() {
    return this.isUser ? 'Edit this message' : 'Edit this answer';
  }

  // Lets the person change the text here, which makes another version of the message. A question
  // is then answered; an edited answer is what the model has said. Enter begins a line in an
  // answer, which often has several.
  edit() {
    if (this.editor) return this.editor.querySelector('textarea').focus();
    const area = make('textarea', {
      'aria-label': this.isUser ? 'Edit the message' : 'Edit the answer',
      rows: this.isUser ? 3 : 8,
      dir: 'auto'
    });
    area.value = this.message.content;
    const close = () => {
      this.editor.replaceWith(this.text);
      this.editor = null;
      this.footer.hidden = false;
      this.footer.querySelector(`[aria-label="${this.editLabel()}"]`)?.focus();
    };
    const send = () => {
      const text = area.value.trim();
      // Until the answer under way has ended, the text stays here.
      if ((!text && !this.message.files) || !this.actions.mayAnswer()) return;
      close();
      this.actions.edit(this.message, text);
    };
    area.addEventListener('keydown', (event) => {
      if (event.isComposing) return;
      if (event.key === 'Escape') {
        event.stopPropagation();
        close();
      } else if (event.key === 'Enter' && (this.isUser ? !event.shiftKey : event.ctrlKey)) {
        event.preventDefault();
        send();
      }
    });
    this.editor = make(
        'div', {class: 'editor'}, area,
        make(
            'div', {class: 'row'},
            make('button', {type: 'button', class: 'button quiet', on: {click: close}}, 'Cancel'),
            make(
                'button', {type: 'button', class: 'button primary', on: {click: send}},
                icon(this.isUser ? 'send' : 'check'), this.isUser ? 'Send' : 'Save')));
    this.text.replaceWith(this.editor);
    this.footer.hidden = true;
    area.style.height = `${Math.min(area.scrollHeight + 4, 400)}px`;
    area.focus();
    area.setSelectionRange(area.value.length, area.value.length);
    return undefined;
  }
}
