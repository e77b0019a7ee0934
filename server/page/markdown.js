// Shows Markdown that comes from a model, which may say anything: elements are created one by one,
// all text is text, links lead to web and mail addresses alone, and nothing is loaded.
import {readBlocks} from './blocks.js';
import {CodeView} from './code_view.js';
import {make} from './elements.js';
import {readInline} from './inline.js';

function link(href, children) {
  return make('a', {href, title: href, target: '_blank', rel: 'noopener noreferrer'}, children);
}

function renderInlineNode(node) {
  switch (node.type) {
    case 'code':
      return make('code', {}, node.text);
    case 'math':
      return make('code', {class: 'math'}, node.text);
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
  const view = new CodeView(block.language);
  view.update(block.text);
  return view.element;
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
    case 'math':
      return make(
          'pre', {class: 'math', dir: 'ltr', tabindex: '0', 'aria-label': 'formula'}, block.text);
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
    this.lastCode = null;  // The view of the last block, if that is code.
  }

  update(text) {
    const blocks = readBlocks(text);
    let same = 0;
    while (same < blocks.length && blocks[same].source === this.sources[same]) ++same;
    if (this.lastCode && same === this.sources.length - 1 && blocks[same] &&
        this.lastCode.isBeginOf(blocks[same])) {
      this.lastCode.update(blocks[same++].text);
    }
    while (this.container.childNodes.length > same) this.container.lastChild.remove();
    for (const block of blocks.slice(same)) this.append(block);
    this.sources = blocks.map((block) => block.source);
  }

  append(block) {
    this.lastCode = null;
    if (block.type === 'code') {
      this.lastCode = new CodeView(block.language);
      this.lastCode.update(block.text);
    }
    this.container.append(this.lastCode?.element ?? renderBlock(block));
  }
}
