// Makes elements. Nothing here parses HTML, so that text is always shown as text.

const SVG = 'http://www.w3.org/2000/svg';

function fill(element, properties, children) {
  // One by one: a call can have only some ten thousand arguments. And before the attributes: with
  // dir="auto", a browser looks at all children whenever one is added.
  for (const child of children.flat()) {
    if (child !== undefined && child !== null) element.append(child);
  }
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === 'on') {
      for (const [event, handler] of Object.entries(value)) {
        element.addEventListener(event, handler);
      }
    } else {
      element.setAttribute(name, value === true ? '' : String(value));
    }
  }
  return element;
}

// make('p', {class: 'note', on: {click: f}}, 'text', element, [elements…]…)
export function make(name, properties = {}, ...children) {
  return fill(document.createElement(name), properties, children);
}

export function makeSvg(name, properties = {}, ...children) {
  return fill(document.createElementNS(SVG, name), properties, children);
}

// Paths in a square of 24 units, drawn with a line.
const ICONS = {
  bars: 'M4 20V10M10 20V4M16 20v-7M21 20H3',
  check: 'M5 13l4 4L19 7',
  close: 'M6 6l12 12M18 6L6 18',
  copy: 'M9 9h10v11H9zM5 15V4h10',
  down: 'M12 5v14M6 13l6 6 6-6',
  clip: 'M8 12l5-5a3 3 0 0 1 4 4l-7 7a5 5 0 0 1-7-7l7-7',
  export: 'M12 4v11M7 10l5 5 5-5M5 20h14',
  file: 'M6 3h8l4 4v14H6zM14 3v4h4M9 12h6M9 16h6',
  import: 'M12 15V4M7 9l5-5 5 5M5 20h14',
  left: 'M14 6l-6 6 6 6',
  menu: 'M4 7h16M4 12h16M4 17h16',
  moon: 'M20 14A8 8 0 0 1 10 4a8 8 0 1 0 10 10z',
  pencil: 'M5 19l1-4L16 5l3 3L9 18z',
  plus: 'M12 5v14M5 12h14',
  regenerate: 'M19 8a8 8 0 1 0 1 5M20 4v5h-5',
  right: 'M10 6l6 6-6 6',
  send: 'M12 19V5M6 11l6-6 6 6',
  sliders: 'M4 7h9M17 7h3M4 17h3M11 17h9M13 5v4h4V5zM7 15v4h4v-4z',
  stop: 'M7 7h10v10H7z',
  sun: 'M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8z' +
      'M12 2v2M12 20v2M4 12H2M22 12h-2M5 5l1 1M18 18l1 1M5 19l1-1M18 6l1-1',
  system: 'M4 5h16v11H4zM9 20h6M12 16v4',
  trash: 'M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13M10 11v5M14 11v5',
};

export function icon(name) {
  return makeSvg(
      'svg', {class: 'icon', viewBox: '0 0 24 24', 'aria-hidden': 'true'},
      makeSvg('path', {d: ICONS[name]}));
}

// A button that shows only an icon; `label` is what screen readers say and what the pointer shows.
export function iconButton(name, label, handler, properties = {}) {
  return make(
      'button', {
        type: 'button',
        class: 'icon-button',
        'aria-label': label,
        title: label,
        on: {click: handler},
        ...properties
      },
      icon(name));
}

export function relabel(button, name, label) {
  button.setAttribute('aria-label', label);
  button.title = label;
  button.replaceChildren(icon(name));
}

// Copies a text. Browsers offer the clipboard only to pages of this host or with TLS; on others, a
// selected text can still be copied.
export async function copyText(text) {
  if (navigator.clipboard) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      // Not allowed: the other way may be.
    }
  }
  const focused = document.activeElement;
  const area = make('textarea', {class: 'unseen', 'aria-hidden': 'true'});
  area.value = text;
  (document.querySelector('dialog[open]') ?? document.body).append(area);
  area.select();
  const copied = document.execCommand('copy');
  area.remove();
  focused?.focus();
  return copied;
}
