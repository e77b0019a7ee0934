// Shows Markdown that comes from a model, which may say anything: elements are created one by one,
// all text is text, links lead to web and mail addresses alone, and nothing is loaded.
import {readBlocks} from './blocks.js';
import {copyText, icon, make} from './elements.js';
import {readInline} from './inline.js';

const COPIED_MS = 1500;

function link(href, children) {
  return make('a', {href, title: href, target: '_blank', rel: 'noopener noreferrer'}, children);
}

function renderInlineNode(node) {
  switch (node.type) {
    case 'code':
      return make('code', {}, node.text);
    case 'break':
      return make('br');
    case 'em':
    case 'strong':
    case 'del':
      return make(node.type, {}, renderNodes(node.children));
    case 'link':
      return link(node.href, renderNodes(node.children));
    // An image would tell its server who reads this, and when.
    case 'image':
      return link(node.href, `image: ${node.text || node.href}`);
    default:
      return node.text;
  }
}

const renderNodes = (nodes) => nodes.map(renderInlineNode);
const renderInline = (text) => renderNodes(readInline(text));

function codeBlock(block) {
  const copy = make('button', {type: 'button', class: 'text-button'}, icon('copy'), 'Copy');
  copy.addEventListener('click', async () => {
    const copied = await copyText(block.text);
    copy.replaceChildren(icon(copied ? 'check' : 'close'), copied ? 'Copied' : 'Not copied');
    setTimeout(() => copy.replaceChildren(icon('copy'), 'Copy'), COPIED_MS);
  });
  return make(
      'figure', {class: 'code', dir: 'ltr'},
      make('figcaption', {}, make('span', {}, block.language || 'code'), copy),
      make(
          'pre', {tabindex: '0', 'aria-label': `code ${block.language}`},
          make('code', {}, block.text)));
}

function tableBlock(block) {
  const row = (cells, name) => make(
      'tr', {},
      cells.map(
          (cell, column) => make(
              name, {
                class: `align-${block.alignments[column]}`,
                scope: name === 'th' ? 'col' : undefined
              },
              renderInline(cell))));
  const [head, ...body] = block.rows;
  return make(
      'div', {class: 'table', tabindex: '0', role: 'group', 'aria-label': 'table'},
      make(
          'table', {}, make('thead', {}, row(head, 'th')),
          make('tbody', {}, body.map((cells) => row(cells, 'td')))));
}

function listBlock(block) {
  const items = block.items.map(({task, blocks}) => {
    const item = make('li', {class: task ? 'task' : undefined});
    if (task) {
      item.append(make(
          'span', {role: 'img', 'aria-label': task === 'done' ? 'done' : 'not done'},
          task === 'done' ? '☑ ' : '☐ '));
    }
    for (const inner of blocks) {
      // A paragraph of an item needs no space around it.
      if (inner.type === 'paragraph' && inner === blocks[0]) {
        item.append(make('span', {dir: 'auto'}, renderInline(inner.text)));
      } else {
        item.append(renderBlock(inner));
      }
    }
    return item;
  });
  return block.ordered ? make('ol', {start: block.start}, items) : make('ul', {}, items);
}

function renderBlock(block) {
  switch (block.type) {
    // The page has headings of its own above these.
    case 'heading':
      return make(
          `h${Math.min(block.level + 2, 6)}`, {class: `heading-${block.level}`, dir: 'auto'},
          renderInline(block.text));
    case 'rule':
      return make('hr');
    case 'code':
      return codeBlock(block);
    case 'quote':
      return make('blockquote', {}, block.blocks.map(renderBlock));
    case 'list':
      return listBlock(block);
    case 'table':
      return tableBlock(block);
    default:
      return make('p', {dir: 'auto'}, renderInline(block.text));
  }
}

// Shows a text in an element, and the same text again when it has grown: blocks that did not change
// keep their elements, so that what a person selected there stays selected.
export class MarkdownView {
  constructor(container) {
    this.container = container;
    this.sources = [];
  }

  update(text) {
    const blocks = readBlocks(text);
    let same = 0;
    while (same < blocks.length && blocks[same].source === this.sources[same]) ++same;
    while (this.container.childNodes.length > same) this.container.lastChild.remove();
    for (const block of blocks.slice(same)) this.container.append(renderBlock(block));
    this.sources = blocks.map((block) => block.source);
  }
}
