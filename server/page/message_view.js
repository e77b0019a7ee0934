// Shows one message with what can be done with it.
import {explain} from './api.js';
import {copyText, icon, iconButton, make, relabel} from './elements.js';
import {formatRate, formatSeconds} from './figures_view.js';
import {MarkdownView} from './markdown.js';

const COPIED_MS = 1500;

const NOTES = {
  length: 'The answer ended at its longest length, or because the context is full.',
  stopped: 'Stopped.',
  unfinished: 'This answer was interrupted when its page was closed.',
  failed: 'This answer did not arrive as a whole.',
};

function formatSpeed(figures) {
  const parts = [];
  if (figures.tokens) parts.push(`${figures.tokens} ${figures.tokens === 1 ? 'token' : 'tokens'}`);
  if (figures.tokens_per_second) parts.push(`${formatRate(figures.tokens_per_second)} tokens/s`);
  if (figures.first_token_seconds) {
    parts.push(`first after ${formatSeconds(figures.first_token_seconds)}`);
  }
  return parts.join(' · ');
}

export class MessageView {
  // `actions`: edit(message, text), regenerate(message), choose(message), askKey(message),
  // mayAnswer().
  constructor(message, author, actions) {
    this.message = message;
    this.actions = actions;
    this.isUser = message.role === 'user';
    this.text = make('div', {class: 'text'});
    this.markdown = new MarkdownView(this.text);
    this.note = make('div', {class: 'note'});
    this.footer = make('footer', {class: 'actions'});
    this.element = make(
        'article', {class: `message ${message.role}`, 'data-id': message.id},
        make('h2', {class: this.isUser ? 'unseen' : 'author'}, author));
    if (!this.isUser) this.makeReasoning();
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

  // `versions`: {index, count, previous, next} among the messages at this place. `answer` is given
  // while this one arrives, and after an error.
  update(versions, answer) {
    this.answer = answer;
    const isRunning = Boolean(answer?.isRunning);
    this.element.setAttribute('aria-busy', String(isRunning));
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
    const {end, content, reasoning} = this.message;
    this.note.classList.toggle('error', Boolean(this.answer?.error));
    if (isRunning) {
      const isWaiting = !content && !reasoning;
      if (!isWaiting) return this.note.replaceChildren();
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
    return this.note.replaceChildren(...(note ? [make('span', {}, note)] : []));
  }

  showError(error) {
    if (this.shownError === error && this.note.childNodes.length) return;
    this.shownError = error;
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
    this.note.replaceChildren(make('p', {role: 'alert'}, text), again);
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
    if (role === 'user') {
      buttons.push(iconButton('pencil', 'Edit this message', () => this.edit()));
    } else {
      // An error has a button of its own for this.
      if (!this.answer?.error) {
        buttons.push(
            iconButton('regenerate', 'Answer again', () => this.actions.regenerate(this.message)));
      }
      if (figures) buttons.push(make('span', {class: 'figures-line'}, formatSpeed(figures)));
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

  // Lets the person change the text here. Sending makes another version of the message.
  edit() {
    if (this.editor) return this.editor.querySelector('textarea').focus();
    const area = make('textarea', {'aria-label': 'Edit the message', rows: 3, dir: 'auto'});
    area.value = this.message.content;
    const close = () => {
      this.editor.replaceWith(this.text);
      this.editor = null;
      this.footer.hidden = false;
      this.footer.querySelector('[aria-label="Edit this message"]')?.focus();
    };
    const send = () => {
      const text = area.value.trim();
      // Until the answer under way has ended, the text stays here.
      if (!text || !this.actions.mayAnswer()) return;
      close();
      this.actions.edit(this.message, text);
    };
    area.addEventListener('keydown', (event) => {
      if (event.isComposing) return;
      if (event.key === 'Escape') {
        event.stopPropagation();
        close();
      } else if (event.key === 'Enter' && !event.shiftKey) {
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
                icon('send'), 'Send')));
    this.text.replaceWith(this.editor);
    this.footer.hidden = true;
    area.style.height = `${Math.min(area.scrollHeight + 4, 400)}px`;
    area.focus();
    area.setSelectionRange(area.value.length, area.value.length);
    return undefined;
  }
}
