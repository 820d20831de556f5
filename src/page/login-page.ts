import { markup } from "./html.ts";
import { layout } from "./layout.ts";

export interface LoginView {
  /** Where to go on afterwards. */
  readonly next: string;
  /** What was wrong with the last try. */
  readonly problem?: string;
  readonly isLoggedIn: boolean;
}

/** `/login`: a key, so that a browser may read the pages of a server that has keys. */
export function loginPage({ next, problem, isLoggedIn }: LoginView): string {
  const body = markup`<h1>Log in</h1>
${problem !== undefined && markup`<p role="alert" class="problem">${problem}</p>`}
<p>This server asks for an API key. Yours is kept as a cookie that no script and no other page can use, for twelve hours, and
only for reading.</p>
<form method="post" action="/login">
<input type="hidden" name="next" value="${next}">
<p><label for="key">API key</label><br>
<input id="key" name="key" type="password" required autocomplete="current-password" size="50"></p>
<p><button>Log in</button></p>
</form>
${
  isLoggedIn &&
  markup`<h2>Log out</h2>
<form method="post" action="/logout"><p><button>Log out</button></p></form>`
}`;
  return layout("Log in", body);
}
