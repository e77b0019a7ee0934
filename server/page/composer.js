// Where a message is written.
import {AttachmentTray} from './attachment_tray.js';
import {relabel} from './elements.js';

const MAX_HEIGHT = 240;
const DRAFT = 'cria.draft';

export class Composer {
  // `actions`: send(text, files), stop(), editLast(), which says whether there was a message to
  // edit, and those of the tray. `tray` has the elements of the tray.
  constructor({form, area, button, tray}, actions) {
    Object.assign(this, {area, button, actions});
    this.tray = new AttachmentTray(tray, {
      ...actions,
      removed: () => area.focus(),
      changed: () => this.showEnabled(),
    });
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
    if (!text && !this.tray.files.length) return;
    this.area.value = '';
    const files = this.tray.take();
    this.fit();
    this.actions.send(text, files);
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
    const isEmpty = !this.area.value.trim() && !this.tray?.files.length;
    this.button.setAttribute('aria-disabled', String(!this.isRunning && isEmpty));
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
