/* Runs before the first paint: theme and density are the browser's own, never the address's. */
(() => {
  const theme = localStorage.getItem('backscroll.theme');
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
  if (localStorage.getItem('backscroll.density') === 'dense') document.documentElement.dataset.density = 'dense';
})();
