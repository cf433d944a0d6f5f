// SPDX-License-Identifier: MIT
// Base64 and gzip, as tools/html/markup.c writes them.
export function fromBase64(text) {
    if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
    const raw = atob(text), bytes = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
    return bytes;
}

export async function gunzip(bytes) {
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
}

export const unpack = (text) => gunzip(fromBase64(text));

// The text of a block of the page, which is dropped then.
export function take(element) {
    const text = element.textContent;
    element.remove();
    return text;
}
