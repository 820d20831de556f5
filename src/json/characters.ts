/** How many characters a text has: one that takes two UTF-16 units is still one. */
export function characterCount(text: string): number {
  let count = text.length;
  for (let i = 0; i < text.length; i++) if ((text.charCodeAt(i) & 0xfc00) === 0xdc00) count--;
  return count;
}

/** Short of counting where that is not needed. */
export function isLongerThan(text: string, characters: number): boolean {
  return text.length > characters && characterCount(text) > characters;
}
