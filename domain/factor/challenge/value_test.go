package challenge_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
)

// A digest matches under the key of the stored digest, if it is equal in full. No digest, and no stored digest, match
// nothing.
func TestMatching(t *testing.T) {
	right := stored("424242")
	cut := challenge.Digest{Key: right.Key, Sum: right.Sum[:16]}
	none := challenge.Digest{Key: right.Key}
	type digests = []challenge.Digest
	for _, c := range []struct {
		name   string
		stored challenge.Digest
		given  digests
		want   string
	}{
		{"alone", right, digests{right}, "executing"},
		{"under the second key", right, digests{sum("new", "424242"), right}, "executing"},
		{"another value", right, digests{stored("424243")}, "OTP_INVALID 4"},
		{"the value under another key", right, digests{sum("new", "424242")}, "OTP_INVALID 4"},
		{"the sum under another key", right, digests{{Key: "new", Sum: right.Sum}}, "OTP_INVALID 4"},
		{"the sum under no key", right, digests{{Sum: right.Sum}}, "OTP_INVALID 4"},
		{"the beginning of the sum", right, digests{cut}, "OTP_INVALID 4"},
		{"more than the sum", cut, digests{right}, "OTP_INVALID 4"},
		{"an empty sum", right, digests{none}, "OTP_INVALID 4"},
		{"nothing", right, nil, "OTP_INVALID 4"},
		{"nothing stored, nothing given", challenge.Digest{}, nil, "OTP_INVALID 4"},
		{"nothing stored, an empty digest given", challenge.Digest{}, digests{{}}, "OTP_INVALID 4"},
		{"nothing stored, a value given", challenge.Digest{}, digests{right}, "OTP_INVALID 4"},
		{"nothing stored, a value under no key given", challenge.Digest{}, digests{{Sum: right.Sum}}, "OTP_INVALID 4"},
		{"only a key stored, an empty sum given", none, digests{none}, "OTP_INVALID 4"},
		{"only a key stored, a zero-length sum given", none, digests{{Key: right.Key, Sum: []byte{}}}, "OTP_INVALID 4"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newGame(t, start(1, "sms"))
			g.c.Methods[0].Digest = c.stored
			a := challenge.Answer{MethodID: "sms", Method: challenge.SMS, Digests: c.given}
			storetest.Equal(t, g.complete(0, a), c.want)
		})
	}
}

// A given verdict is final if the method is judged elsewhere; the digests then only identify a repeat. The machine
// alone compares sent codes: no verdict makes them right.
func TestVerdicts(t *testing.T) {
	const right, other = "sms#0", "something else"
	for _, c := range []struct {
		id      string
		verdict challenge.Verdict
		value   string
		want    string
	}{
		{"sms", challenge.Undecided, right, "executing"},
		{"sms", challenge.Undecided, other, "OTP_INVALID 4"},
		{"sms", challenge.Right, other, "OTP_INVALID 4"},
		{"sms", challenge.Right, right, "OTP_INVALID 4"},
		{"mail", challenge.Right, other, "OTP_INVALID 4"},
		{"mail", challenge.Refusal, other, "OTP_INVALID 4"},
		{"sms", challenge.Wrong, right, "OTP_INVALID 4"},
		{"totp", challenge.Undecided, other, "OTP_INVALID 4"},
		{"totp", challenge.Right, other, "executing"},
		{"totp", challenge.Wrong, other, "OTP_INVALID 4"},
		{"push", challenge.Undecided, other, "DEVICE_SIGNATURE_INVALID"},
		{"push", challenge.Right, other, "executing"},
		{"push", challenge.Wrong, other, "DEVICE_SIGNATURE_INVALID"},
		{"push", challenge.Refusal, other, "denied"},
	} {
		g := newGame(t, start(1, "sms", "mail", "totp", "push"))
		m, _ := g.c.Method(c.id)
		a := typed(m, c.value)
		a.Verdict = c.verdict
		storetest.Equal(t, g.complete(0, a), c.want, c.id, "verdict", c.verdict, c.value)
	}
}

// A completion records its order and instant. It changes no other method and sets no closing reason.
func TestCompletedMethods(t *testing.T) {
	g := newGame(t, start(3, "sms", "mail", "totp", "push"))
	storetest.Equal(t, len(g.c.CompletedMethods()), 0, "a new challenge has completed methods")
	g.do(10, "totp right")
	g.do(20, "sms right")
	if g.c.Last != "" || g.c.Completed() {
		t.Errorf("two of three: ended by %q, completed %t", g.c.Last, g.c.Completed())
	}
	g.do(30, "mail right")
	want := []struct {
		id string
		ms int64
	}{{"totp", 10}, {"sms", 20}, {"mail", 30}}
	done := g.c.CompletedMethods()
	if len(done) != len(want) {
		t.Fatalf("%d completed methods", len(done))
	}
	for i, w := range want {
		if m := done[i]; m.ID != w.id || m.Order != i+1 || m.CompletedAt != t0+w.ms {
			t.Errorf("completion %d is %s, order %d, at %d ms", i+1, m.ID, m.Order, m.CompletedAt-t0)
		}
	}
	if g.c.Last != "mail" || !g.c.Completed() || g.c.Reason != challenge.NotClosed {
		t.Errorf("ended by %q, completed %t, reason %d", g.c.Last, g.c.Completed(), g.c.Reason)
	}
	if push, _ := g.c.Method("push"); push.Order != 0 || push.CompletedAt != 0 {
		t.Errorf("the push was not answered: %+v", push)
	}
}

// Only the answer that ended the challenge has an exact repeat: the same method, its name and the same value
// (D-2FA-14).
func TestRepeat(t *testing.T) {
	finish := []string{"sms right", "mail right"} // of two required
	zeros := typed(challenge.Method{}, "000000").Digests
	for _, c := range []struct {
		name  string
		moves []string
		id    string
		edit  func(*challenge.Answer)
		want  bool
	}{
		{"the last answer while executing", finish, "mail", nil, true},
		{"the last answer when done", append(finish, "finish"), "mail", nil, true},
		{"another value", finish, "mail", func(a *challenge.Answer) { a.Digests = zeros }, false},
		{"no value", finish, "mail", func(a *challenge.Answer) { a.Digests = nil }, false},
		{"an empty digest", finish, "mail", func(a *challenge.Answer) { a.Digests = []challenge.Digest{{Key: "old"}} },
			false},
		{"only under the newer key", finish, "mail", func(a *challenge.Answer) { a.Digests = a.Digests[:1] }, false},
		{"another method's name", finish, "mail", func(a *challenge.Answer) { a.Method = challenge.SMS }, false},
		{"an unknown method", finish, "mail", func(a *challenge.Answer) { a.MethodID = "none" }, false},
		{"another method with its value", finish, "mail", func(a *challenge.Answer) {
			a.MethodID, a.Method = "sms",
				challenge.SMS
		}, false},
		{"an earlier completion", finish, "sms", nil, false},
		{"a method never answered", finish, "totp", nil, false},
		{"a completion with more to come", finish[:1], "sms", nil, false},
		{"nothing answered yet", nil, "mail", nil, false},
		{"after a wrong value", []string{"mail wrong"}, "mail", nil, false},
		{"TOTP, by the digest of its value", []string{"sms right", "totp right"}, "totp", nil, true},
		{"TOTP with another value", []string{"sms right", "totp right"}, "totp",
			func(a *challenge.Answer) { a.Digests = zeros }, false},
		{"approval", []string{"sms right", "push right"}, "push", nil, true},
		{"denial", []string{"sms right", "push deny"}, "push deny", nil, true},
		{"denial, then approval", []string{"sms right", "push deny"}, "push", nil, false},
		{"approval, then denial", []string{"sms right", "push right"}, "push deny", nil, false},
		{"denial, then another method", []string{"sms right", "push deny"}, "sms", nil, false},
		{"closed before the end", []string{"sms right", "close"}, "sms", nil, false},
		{"closed while executing", append(finish, "abort"), "mail", nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newGame(t, start(2, "sms", "mail", "totp", "push"))
			for _, m := range c.moves {
				g.do(0, m)
			}
			a := repeatOf(g.c, c.id)
			if c.edit != nil {
				c.edit(&a)
			}
			storetest.Equal(t, g.c.Repeat(a), c.want)
		})
	}
}

// A repeat is recognised by the accepted value. This also holds for a value that was judged elsewhere, and for any
// key of the method's own digest.
func TestRepeatKeepsTheAnswer(t *testing.T) {
	for _, keys := range [][]string{{"k1"}, {"k2", "k1"}, {"k1", "k2", "k3"}} {
		g := newGame(t, start(1, "totp"))
		var a challenge.Answer
		a.MethodID, a.Method, a.Verdict = "totp", challenge.TOTP, challenge.Right
		for _, k := range keys {
			a.Digests = append(a.Digests, sum(k, "123456"))
		}
		if got := g.complete(0, a); got != "executing" || !g.c.Repeat(a) {
			t.Errorf("keys %v: %s, repeat %t", keys, got, g.c.Repeat(a))
		}
		later := a // a key was added in front since
		later.Digests = append([]challenge.Digest{sum("k9", "123456")}, a.Digests...)
		if !g.c.Repeat(later) {
			t.Errorf("keys %v: not known after a new key", keys)
		}
	}
}

// repeatOf returns the right answer to a method, or for "<id> deny" the denying one.
func repeatOf(c challenge.Challenge, what string) challenge.Answer {
	verb := "right"
	if what == "push deny" {
		what, verb = "push", "deny"
	}
	m, _ := c.Method(what)
	return answer(m, verb)
}

func TestStoredFormOfAResult(t *testing.T) {
	for _, want := range []challenge.Result{
		{},
		{Success: true, Data: json.RawMessage(`{"sessionKey":"s"}`), Headers: map[string]string{"x-auth": "a.b.c"},
			UserID: "u", SessionID: "s", SV: 7},
		{Success: true, Headers: map[string]string{"ot-auth": "1", "x-auth": ""}, SV: -1},
		challenge.Failed(fault.New(fault.InvalidState, "ışık \x00")),
	} {
		data, err := want.AppendBinary([]byte{7})
		if err != nil || data[0] != 7 {
			t.Fatal("AppendBinary does not append", err)
		}
		var got challenge.Result
		if err := got.UnmarshalBinary(data[1:]); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v became %+v: %v", want, got, err)
		}
		if err := got.UnmarshalBinary(append(data[1:], "of a later version"...)); err != nil ||
			!reflect.DeepEqual(got, want) {
			t.Errorf("with what a later version adds: %+v, %v", got, err)
		}
	}
	whole, _ := challenge.Result{Success: true, UserID: "u"}.AppendBinary(nil)
	kept := challenge.Result{UserID: "kept"}
	for what, data := range map[string][]byte{"nothing": nil, "torn": append(whole[:6:6], 200),
		"of another form": []byte(`{"success":true}`)} {
		if err := kept.UnmarshalBinary(data); err == nil || kept.UserID != "kept" {
			t.Errorf("%s: %+v, %v", what, kept, err)
		}
	}
}
