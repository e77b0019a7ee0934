// Where a message is written.
import {relabel} from './elements.js';

const MAX_HEIGHT = 240;
const DRAFT = 'cria.draft';

export class Composer {
  // `actions`: send(text), stop(), editLast(), which says whether there was a message to edit.
  constructor({form, area, button}, actions) {
    Object.assign(this, {area, button, actions});
    this.isRunning = false;
    area.value = sessionStorage.getItem(DRAFT) ?? '';
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      if (this.isRunning)
        actions.stop();
      else
        this.send();
    });
    area.addEventListener('input', () => this.fit());
    area.addEventListener('keydown', (event) => this.onKey(event));
    this.setRunning(false);
    this.fit();
  }

  onKey(event) {
    // The keys of an input method are not ours.
    if (event.isComposing || event.keyCode === 229) return;
    if (event.key === 'Enter' && !event.shiftKey && !event.ctrlKey && !event.altKey &&
        !event.metaKey) {
      event.preventDefault();
      if (!this.isRunning) this.send();
    } else if (event.key === 'ArrowUp' && !this.area.value && !this.isRunning) {
      if (this.actions.editLast()) event.preventDefault();
    }
  }

  send() {
    const text = this.area.value.trim();
    if (!text) return;
    this.area.value = '';
    this.fit();
    this.actions.send(text);
  }

  // While an answer arrives, the button stops it.
  setRunning(isRunning) {
    this.isRunning = isRunning;
    relabel(
        this.button, isRunning ? 'stop' : 'send',
        isRunning ? 'Stop the answer (Esc)' : 'Send (Enter)');
    this.showEnabled();
  }

  showEnabled() {
    // Not `disabled`, with which the button would lose the focus.
    this.button.setAttribute('aria-disabled', String(!this.isRunning && !this.area.value.trim()));
  }

  fit() {
    this.area.style.height = 'auto';
    this.area.style.height = `${Math.min(this.area.scrollHeight, MAX_HEIGHT)}px`;
    this.showEnabled();
    try {
      sessionStorage.setItem(DRAFT, this.area.value);
    } catch {
      // Only a reload of the page would need it.
    }
  }
}
