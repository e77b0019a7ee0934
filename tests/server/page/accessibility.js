// Checks what is shown: names of controls, labels, contrast. Run in the browser by browser_test.py.

const MIN_CONTRAST = 4.5;      // WCAG 2.2, 1.4.3, of text
const MIN_LARGE_CONTRAST = 3;  // of 24 pixels and more
const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});

// Red, green, blue and alpha from 0 to 255, of any color that the browser knows.
function channels(color) {
  canvas.clearRect(0, 0, 1, 1);
  canvas.fillStyle = color;
  canvas.fillRect(0, 0, 1, 1);
  return canvas.getImageData(0, 0, 1, 1).data;
}

function luminance(color) {
  const [r, g, b] = Array.from(channels(color).slice(0, 3), (value) => {
    const part = value / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function ground(element) {
  for (let each = element; each; each = each.parentElement) {
    const color = getComputedStyle(each).backgroundColor;
    if (channels(color)[3] === 255) return color;
  }
  return getComputedStyle(document.body).backgroundColor;
}

const describe = (element) =>
    `${element.localName}.${element.className.baseVal ?? element.className}#${element.id}`;

function checkContrast(element, problems) {
  const style = getComputedStyle(element);
  const [a, b] = [luminance(style.color), luminance(ground(element))].sort((x, y) => y - x);
  const contrast = (a + 0.05) / (b + 0.05);
  const wanted = parseFloat(style.fontSize) >= 24 ? MIN_LARGE_CONTRAST : MIN_CONTRAST;
  if (contrast < wanted) problems.push(`${describe(element)}: contrast ${contrast.toFixed(2)}`);
}

function nameOf(element) {
  const labelledBy = element.getAttribute('aria-labelledby');
  return (element.getAttribute('aria-label') ??
          (labelledBy && document.getElementById(labelledBy)?.textContent) ??
          (element.labels?.length ? element.labels[0].textContent : element.textContent))
      .trim();
}

// Returns a list of problems.
export function check() {
  const problems = [];
  const isShown = (element) => element.checkVisibility({visibilityProperty: true});
  for (const element of document.querySelectorAll(
           'button, a, input, textarea, summary, dialog, aside, nav, ' +
           '[role="region"], [role="img"], [tabindex="0"]')) {
    if (isShown(element) && !nameOf(element)) problems.push(`${describe(element)} has no name`);
  }
  for (const element of document.querySelectorAll(
           '[aria-controls], [aria-describedby], [aria-labelledby]')) {
    for (const attribute of ['aria-controls', 'aria-describedby', 'aria-labelledby']) {
      const id = element.getAttribute(attribute);
      if (id && !document.getElementById(id))
        problems.push(`${describe(element)}: ${attribute} ${id} is missing`);
    }
  }
  const ids = [...document.querySelectorAll('[id]')].map((element) => element.id);
  for (const id of new Set(ids))
    if (ids.filter((each) => each === id).length > 1) problems.push(`twice: #${id}`);
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = texts.nextNode(); node; node = texts.nextNode()) {
    const element = node.parentElement;
    if (node.data.trim() && isShown(element) &&
        !element.closest('.unseen, [aria-disabled="true"], script, noscript')) {
      checkContrast(element, problems);
    }
  }
  if (document.querySelectorAll('h1').length !== 1) problems.push('there is not one h1');
  return problems;
}
