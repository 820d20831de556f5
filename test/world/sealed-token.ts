/** The name of a dispatch: of a token as it is, or of one that the gateway has sealed. */
export function dispatchName(token: string): string {
  if (token.includes(":")) return token;
  const [body] = token.split(".");
  return (JSON.parse(Buffer.from(body!, "base64url").toString("utf8")) as { token: string }).token;
}
