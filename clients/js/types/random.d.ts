/** @returns {number} at least 0 and below 1 */
export function random(): number;
