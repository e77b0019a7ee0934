// What opens and closes around the conversation, and the colors.
import {relabel} from './elements.js';

const PANELS = ['settings', 'figures'];
const THEMES = {
  '': ['system', 'Colors of the system'],
  light: ['sun', 'Light colors'],
  dark: ['moon', 'Dark colors'],
};
const element = (id) => document.getElementById(id);

export class Layout {
  // `onFigures` is called when the panel with the figures opens.
  constructor(onFigures) {
    this.onFigures = onFigures;
    for (const id of PANELS) {
      element(`open-${id}`).addEventListener('click', () => this.togglePanel(id));
      element(id).querySelector('.close').addEventListener('click', () => this.togglePanel(id));
    }
    element('open-sidebar').addEventListener('click', () => this.toggleSidebar(true));
    element('close-sidebar').addEventListener('click', () => this.toggleSidebar(false));
    element('shade').addEventListener('click', () => this.toggleSidebar(false));
    element('theme').addEventListener('click', () => this.nextTheme());
    this.showTheme();
  }

  // In a narrow window, the list of conversations lies over the rest; otherwise it is always there.
  toggleSidebar(isOpen) {
    const wasOpen = document.body.classList.contains('with-sidebar');
    document.body.classList.toggle('with-sidebar', isOpen);
    element('shade').hidden = !isOpen;
    element('open-sidebar').setAttribute('aria-expanded', String(isOpen));
    document.querySelector('main').inert = isOpen;
    if (isOpen)
      element('new').focus();
    else if (wasOpen)
      element('open-sidebar').focus();
  }

  // False if it was not open.
  closeSidebar() {
    if (!document.body.classList.contains('with-sidebar')) return false;
    this.toggleSidebar(false);
    return true;
  }

  togglePanel(id) {
    const opens = element(id).hidden;
    for (const each of PANELS) {
      element(each).hidden = each !== id || !opens;
      element(`open-${each}`).setAttribute('aria-expanded', String(each === id && opens));
    }
    if (!opens)
      element(`open-${id}`).focus();
    else
      element(`${id}-title`).focus();
    if (opens && id === 'figures') this.onFigures();
  }

  closePanels() {
    for (const id of PANELS)
      if (!element(id).hidden) this.togglePanel(id);
  }

  nextTheme() {
    const names = Object.keys(THEMES);
    const next = names[(names.indexOf(this.theme()) + 1) % names.length];
    if (next)
      document.documentElement.dataset.theme = next;
    else
      delete document.documentElement.dataset.theme;
    try {
      localStorage.setItem('cria.theme', next);
    } catch {
      // It lasts until the page is closed.
    }
    this.showTheme();
  }

  theme() {
    return document.documentElement.dataset.theme ?? '';
  }

  showTheme() {
    relabel(element('theme'), ...THEMES[this.theme()]);
  }
}
