// A classic script in the head: the theme is set before anything is drawn, so that a dark page never flashes white.
{
  let theme = null;
  try {
    theme = localStorage.getItem("nexo.theme");
  } catch {
    // storage is closed to this page: follow the system
  }
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
}
