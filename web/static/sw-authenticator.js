/** The service worker of the authenticator: it shows a notification for a push, and keeps the page for a start without
 *  a network. It keeps files of the page only, never an answer of the interface. A push has the challenge's id and no
 *  content (docs/devices.md); the page reads the rest under the signature of the device. */

const CACHE = 'castellan-authenticator-1';
const WORDS = 'castellan-authenticator-words';
const FILES = [
  '../authenticator',
  'style.css',
  'authenticator.css',
  'icon.svg',
  'manifest.webmanifest',
  'authenticator.js',
  'approvals.js',
  'authenticator-texts.js',
  'texts.js',
  'dom.js',
  'errors.js',
  'agent.js',
  'challenge.js',
  'castellan-client.js',
  'castellan-device.js',
  'castellan-passkey.js',
  '../authenticator/service',
].map((name) => new URL(name, self.location).href);

self.addEventListener('install', (event) => {
  event.waitUntil(
    caches
      .open(CACHE)
      .then((cache) => cache.addAll(FILES))
      .then(() => self.skipWaiting()),
  );
});

self.addEventListener('activate', (event) => {
  const old = (name) => name.startsWith('castellan-authenticator-') && name !== CACHE && name !== WORDS;
  event.waitUntil(
    caches
      .keys()
      .then((names) => Promise.all(names.filter(old).map((name) => caches.delete(name))))
      .then(() => self.clients.claim()),
  );
});

self.addEventListener('fetch', (event) => {
  const address = event.request.url.split(/[?#]/)[0];
  if (event.request.method === 'GET' && FILES.includes(address)) event.respondWith(freshOrKept(event.request, address));
});

/** The file of the service, or the kept one if the service cannot be reached. */
async function freshOrKept(request, address) {
  const cache = await caches.open(CACHE);
  try {
    const fresh = await fetch(request);
    if (fresh.ok) await cache.put(address, fresh.clone());
    if (fresh.status < 500) return fresh;
  } catch {
    /* no network */
  }
  return (await cache.match(address)) ?? Response.error();
}

self.addEventListener('push', (event) => event.waitUntil(pushed(event.data)));

async function pushed(data) {
  let challengeId = '';
  try {
    challengeId = String(data.json().challengeId);
  } catch {
    /* a push without a readable content still wakes */
  }
  for (const page of await pages()) page.postMessage({ type: 'push', challengeId });
  const { title = 'Castellan', body = 'A request waits for your decision.', lang = 'en', dir = 'ltr' } = await words();
  await self.registration.showNotification(title, {
    body,
    lang,
    dir,
    tag: challengeId,
    icon: new URL('icon.svg', self.location).href,
    data: { challengeId },
  });
}

self.addEventListener('notificationclick', (event) => {
  event.notification.close();
  event.waitUntil(opened(event.notification.data?.challengeId ?? ''));
});

async function opened(challengeId) {
  const [page] = await pages();
  if (!page) return self.clients.openWindow(`${self.registration.scope}#${encodeURIComponent(challengeId)}`);
  page.postMessage({ type: 'open', challengeId });
  return page.focus();
}

const pages = async () =>
  (await self.clients.matchAll({ type: 'window', includeUncontrolled: true })).filter((page) =>
    page.url.startsWith(self.registration.scope),
  );

/** The notification in the language of the page, which keeps it here. */
async function words() {
  const kept = await caches.match(new URL('authenticator-words', self.location), { cacheName: WORDS });
  return kept ? kept.json() : {};
}
