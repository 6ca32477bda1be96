import assert from "node:assert/strict";
import test from "node:test";
import { sentence } from "castellan-console/app/sentence";

test("a message of the service becomes a sentence", () => {
  assert.equal(
    sentence("the identifier or the password is wrong", "en"),
    "The identifier or the password is wrong.",
  );
  assert.equal(sentence("izin verilmedi", "tr"), "İzin verilmedi.");
  assert.equal(sentence("Already whole.", "en"), "Already whole.");
  assert.equal(
    sentence("mails[0].to: must not be empty", "en"),
    "mails[0].to: must not be empty.",
  );
  assert.equal(sentence("", "en"), "");
});

test("a message about one field names it", () => {
  const of = (message: string) => [{ field: "amount", message }];
  assert.equal(
    sentence(
      "amount: has too many decimals",
      "en",
      of("has too many decimals"),
    ),
    "The field amount has too many decimals.",
  );
  assert.equal(
    sentence("amount: nothing to change", "en", of("nothing to change")),
    "Amount: nothing to change.",
  );
  assert.equal(
    sentence("amount: çok büyük", "tr", of("çok büyük")),
    "Amount: çok büyük.",
  );
});
