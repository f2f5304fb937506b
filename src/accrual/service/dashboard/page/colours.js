// Which arms have a colour. The seven colours can be told apart with any colour vision (after Okabe and Ito).
// All other arms are grey. No colour stands alone: every line and band has its name.

export const COLOURS = 7;

export class Palette {
  #slot = new Map(); // arm's name -> number of its colour

  /** Give colours to all of a few arms, or to the most often chosen of many; return their names. */
  update(arms) {
    const wanted =
      arms.length <= COLOURS
        ? arms
        : [...arms].sort((a, b) => b.decisions - a.decisions).slice(0, COLOURS - 1);
    const names = new Set(wanted.map((arm) => arm.name));
    for (const name of this.#slot.keys()) if (!names.has(name)) this.#slot.delete(name);
    for (const name of names) {
      if (this.#slot.has(name)) continue;
      const taken = new Set(this.#slot.values());
      for (let slot = 1; slot <= COLOURS; slot++) {
        if (taken.has(slot)) continue;
        this.#slot.set(name, slot);
        break;
      }
    }
    return arms.filter((arm) => names.has(arm.name)).map((arm) => arm.name);
  }

  /** Return the number of an arm's colour: 1 to 7, or 0 for grey. */
  of(name) {
    return this.#slot.get(name) || 0;
  }
}

/** Return a value of the style sheet as it is now, light or dark. */
export const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
export const colour = (slot) => css(`--arm-${slot}`);
