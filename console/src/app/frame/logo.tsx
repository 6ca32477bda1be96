/** The castle of the logo, as in web/static/icon.svg. */
export function Logo({ size = 26 }: { size?: number }) {
  return (
    <svg width={size} height={size} viewBox="0 0 32 32" aria-hidden>
      <rect width="32" height="32" rx="8" fill="#0f6b6b" />
      <path fill="#fff" d="M8 7h4v3h2.5V7h3v3H20V7h4v7l-2 2v9H10v-9l-2-2z" />
      <path fill="#0f6b6b" d="M16 16.5a2 2 0 0 1 1.1 3.67L17.8 23h-3.6l.7-2.83A2 2 0 0 1 16 16.5z" />
    </svg>
  );
}
