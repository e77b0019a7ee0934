// Runs before the page is drawn, so that it does not flash in the other colors. Not a module, for
// this.
(() => {
  try {
    const theme = localStorage.getItem('cria.theme');
    if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
  } catch {
    // Without a storage, the system's theme is used.
  }
})();
