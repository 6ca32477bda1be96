import assert from "node:assert/strict";
import test from "node:test";
import { deviceName } from "castellan-console/app/client";

const webkit = "AppleWebKit/537.36 (KHTML, like Gecko)";

test("a browser by name, version and system", () => {
  const of = (deviceDesc: string) => deviceName({ deviceDesc });
  assert.equal(
    of(
      `Mozilla/5.0 (X11; Linux x86_64) ${webkit} Chrome/148.0.0.0 Safari/537.36`,
    ),
    "Chrome 148, Linux",
  );
  assert.equal(
    of(
      `Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${webkit} Chrome/148.0.0.0 Safari/537.36 Edg/148.0.0.0`,
    ),
    "Edge 148, Windows",
  );
  assert.equal(
    of(
      "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
    ),
    "Firefox 140, Linux",
  );
  assert.equal(
    of(
      "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 Version/18.0 Mobile Safari/604.1",
    ),
    "Safari 18, iPhone",
  );
  assert.equal(
    of(
      `Mozilla/5.0 (Linux; Android 15) ${webkit} Chrome/148.0 Mobile Safari/537.36`,
    ),
    "Chrome 148, Android",
  );
});

test("other devices as they are described", () => {
  assert.equal(
    deviceName({
      deviceBrand: "Apple",
      deviceModel: "iPhone 15",
      deviceDesc: "app",
    }),
    "Apple iPhone 15",
  );
  assert.equal(deviceName({ deviceDesc: "node" }), "node");
  assert.equal(deviceName({}), "");
});
