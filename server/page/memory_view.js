// A picture of the memory: the parts of the plan, and below them what is used, in the same scale.
import {formatBytes} from './bytes.js';
import {make} from './elements.js';

// Each part has a color of its own. More parts share the last.
const NUM_COLORS = 8;
const MIN_PERCENT = 0.4;  // So that a small part can still be seen.

// The lines of /props that can be shown, the largest first.
function readPlan(lines) {
  if (!Array.isArray(lines)) return [];
  return lines.filter((line) => typeof line?.name === 'string' && line.bytes > 0)
      .map(({name, bytes, kind}) => ({name, bytes, isMapped: kind === 'mapped'}))
      .sort((a, b) => b.bytes - a.bytes);
}

function readUsed(used) {
  return [
    {name: 'private', bytes: used?.private_bytes, isMapped: false, isUsed: true},
    {name: 'of files', bytes: used?.mapped_bytes, isMapped: true, isUsed: true},
  ].filter((line) => line.bytes > 0);
}

const sum = (lines) => lines.reduce((bytes, line) => bytes + line.bytes, 0);

// The parts that have colors, of which the last may stand for several, and these.
function divide(lines) {
  if (lines.length <= NUM_COLORS) return [lines, []];
  const small = lines.slice(NUM_COLORS - 1);
  const together = {name: `${small.length} smaller parts`, bytes: sum(small), isMapped: false};
  return [[...lines.slice(0, NUM_COLORS - 1), together], small];
}

export class MemoryView {
  constructor(element) {
    this.element = element;
  }

  // `used` is {private_bytes, mapped_bytes}, or undefined if the server does not say it.
  show(planLines, used) {
    const lines = readPlan(planLines);
    const usedLines = readUsed(used);
    const shown = JSON.stringify([lines, usedLines]);
    if (shown === this.shown) return;
    this.shown = shown;
    const planned = sum(lines);
    const usedBytes = sum(usedLines);
    const scale = Math.max(planned, usedBytes);
    const parts = [];
    if (!scale) {
      parts.push(make('p', {class: 'hint'}, 'This server does not tell how it uses memory.'));
    }
    const [large, small] = divide(lines);
    if (planned) parts.push(this.makeBar('planned', planned, large, scale));
    if (usedBytes) {
      const percent = planned ? `, ${Math.round(100 * usedBytes / planned)}% of the plan` : '';
      parts.push(this.makeBar(`used${percent}`, usedBytes, usedLines, scale));
    }
    if (planned) parts.push(this.makeTable('Parts of the plan', large));
    if (small.length) parts.push(this.makeSmallParts(small));
    if (lines.some((line) => line.isMapped)) {
      parts.push(make(
          'p', {class: 'hint'},
          'Striped parts come from a file: the system may drop them and read them again.'));
    }
    this.element.replaceChildren(...parts);
  }

  swatchClass(line, index) {
    const color = line.isUsed ? 'used' : `color-${Math.min(index, NUM_COLORS - 1)}`;
    return `part ${color}${line.isMapped ? ' mapped' : ''}`;
  }

  makeBar(label, bytes, lines, scale) {
    const bar =
        make('div', {class: 'bar', role: 'img', 'aria-label': `${label}: ${formatBytes(bytes)}`});
    lines.forEach((line, index) => {
      const part = make('span', {
        class: this.swatchClass(line, index),
        title: `${line.name}: ${formatBytes(line.bytes)}`
      });
      // A rule of the policy forbids style attributes, but not this.
      part.style.width = `${Math.max(MIN_PERCENT, 100 * line.bytes / scale)}%`;
      bar.append(part);
    });
    return make(
        'div', {class: 'bar-row'},
        make('p', {}, make('strong', {}, formatBytes(bytes)), ` ${label}`), bar);
  }

  makeTable(caption, lines, hasSwatches = true) {
    const swatch = (line, index) =>
        make('span', {class: `swatch ${this.swatchClass(line, index)}`, 'aria-hidden': 'true'});
    const rows = lines.map(
        (line, index) => make(
            'tr', {},
            make('th', {scope: 'row'}, hasSwatches ? swatch(line, index) : null, line.name),
            make('td', {}, formatBytes(line.bytes)),
            make('td', {class: 'kind'}, line.isMapped ? 'file' : '')));
    const heads = ['part', 'size', 'kind'].map((name) => make('th', {scope: 'col'}, name));
    return make(
        'table', {class: 'parts'}, make('caption', {class: 'unseen'}, caption),
        make('thead', {class: 'unseen'}, make('tr', {}, heads)), make('tbody', {}, rows));
  }

  // Folded, and as before when the figures change.
  makeSmallParts(lines) {
    const details = make(
        'details', {class: 'small-parts', open: this.isOpen}, make('summary', {}, 'Smaller parts'),
        this.makeTable('Smaller parts', lines, false));
    details.addEventListener('toggle', () => {
      this.isOpen = details.open;
    });
    return details;
  }
}
