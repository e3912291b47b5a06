// A classic script in the head: the looks are set before anything is drawn, so that a dark page never flashes white.
{
  const known = { theme: ["light", "dark"], size: ["small", "large"], motion: ["less"] };
  for (const [name, values] of Object.entries(known)) {
    let value = null;
    try {
      value = localStorage.getItem(`nexo.${name}`);
    } catch {
      // storage is closed to this page: follow the system
    }
    if (values.includes(value)) document.documentElement.dataset[name] = value;
  }
}
