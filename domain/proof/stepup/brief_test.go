package stepup

import (
	"strings"
	"testing"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/storetest"
)

// The words of a service and of a gateway reach an SMS only if they cannot be read as a host name, as a code or as
// another message. Those of this service are not judged.
func TestWordsOfOthersInMessages(t *testing.T) {
	for words, fits := range map[string]bool{
		"Pay out 25 EUR": true, "Order 7, Amount 999.00": true, "Sipariş 7: ₺5,50": true, "طلب ٧": true, "नमस्ते": true,
		"Order a-b + c — d": true, "No. 5": true, "A.": true, "1.234.567,00 TRY": true, "12345": true, "1 2345": true,
		strings.Repeat("x", 80): true, "": false, strings.Repeat("x", 81): false, "two\nlines": false, "a\u202eb": false,
		"log in at https://evil.test": false, "evil.test": false, "EVIL.TEST": false, "Evil.Test": false,
		"7.evil.Test":    false,
		"evil\uff0etest": false, "evil\u3002test": false, "evil\uff61test": false, "evil\u2024test": false,
		"ｅｖｉｌ.ｔｅｓｔ": false, "пример.рф": false, "evil\u0660test": false, "evil\ua4f8test": false, "a.b": false,
		"192.0.2.1": false, "at 2001:db8::1": false, "evil/test": false, "me@evil": false, "x!": false,
		"code 123456": false, "123 456": false, "123-456": false, "١٢٣٤٥٦": false, "1 2 3 4 5 6": false, "12—34—56": false,
		"Order 1234567": false, "482  913": false, "482,913": false, "482.913": false, "482: 913": false,
		"4+8+2+9+1+3": false,
		"482 - 913":   false, "4\u03018\u030129\u030113": false, "482ـ913": false, "482\ua4f8 913": false, "48 a 2913": true,
		"482.913 TRY": false, "482₺913": false, "2.000.000 TRY": true, "1,000,000€": true, "2.000.000": false,
		"Amount: 12,345.00 USD": true, "482 913,000.00 USD": false, "Amount 1000.00": false,
	} {
		want := ""
		if fits {
			want = "(" + words + ")"
		}
		for _, service := range []string{"shop", challenge.Gateway, ""} {
			p := newPorts(t, 1, "SMS")
			r := login(alice())
			r.Service, r.Brief = service, words
			for _, code := range []string{challenge.ServiceAction, challenge.Gateway} {
				p.Starter.Actions[code] = challenge.Action{Code: code, Flow: challenge.FlowSession}
			}
			if service == "" {
				want = words
			}
			got, err := p.Start(t.Context(), r)
			if storetest.Must(t, err); got.Challenge.Brief != want {
				t.Errorf("%q of %q is %q in messages", words, service, got.Challenge.Brief)
			}
		}
	}
}
