package challenge

import (
	"slices"
	"testing"

	"castellan/domain/delivery/message"
)

// A kind is a row: the code of a call goes to the telephone and to no other address, in every place that reads the
// table.
func TestNewKindIsARow(t *testing.T) {
	before := kinds
	t.Cleanup(func() { kinds = before })
	kinds = append(slices.Clone(kinds), kind{"VOICE", "CALL", "VOICE", phoneNumber, true, phoneHint, nil, sentCodes,
		[]string{"tel", "otp"}})

	const voice = Name("VOICE")
	if n, ok := ParseName("CALL"); n != voice || !ok {
		t.Errorf("the alias names %q", n)
	}
	a := Account{Phone: "+905321234512", Dial: "90", Mail: "jane@example.com"}
	if to := voice.Address(a); !voice.Sent() || to != a.Phone || voice.Hint(to, a.Dial) != "+90********12" {
		t.Errorf("a code is sent %t to %q, shown as %q", voice.Sent(), to, voice.Hint(to, a.Dial))
	}
	if got := Sending(Account{Phone: a.Phone}); !slices.Equal(got, []Name{SMS, voice}) {
		t.Errorf("codes to a telephone number: %v", got)
	}
	if !a.Owns(voice) || (Account{Mail: a.Mail, TOTP: true, Push: true}).Owns(voice) || !voice.Typed() {
		t.Error("whose kind it is, is not what its row says")
	}
	if FactorOf(FlowLogin, voice) != FactorOf(FlowLogin, SMS) || factorName(FlowLogin, voice) != "SMS, MAIL, VOICE" {
		t.Errorf("a wrong code switches off %q", factorName(FlowLogin, voice))
	}
	if got := voice.AMR(); !slices.Equal(got, []string{"tel", "otp"}) {
		t.Errorf("amr %v", got)
	}
	if got := voice.Enum(); !slices.Equal(got, []string{"TOTP", "PUSH", "SMS", "MAIL", "VOICE"}) {
		t.Errorf("documented values %v", got)
	}
}

func TestUnknownKindHasNothing(t *testing.T) {
	const n = Name("NONE")
	a := Account{Phone: "+1", Mail: "a@b", TOTP: true, Push: true}
	if n.Sent() || n.Channel() != "" || n.Address(a) != "" || n.Hint("+1", "1") != "" || n.Typed() || a.Owns(n) ||
		n.AMR() != nil || FactorOf(FlowLogin, n) != 0 {
		t.Error("an unknown kind has a column")
	}
	if TOTP.Channel() != "" || TOTP.Address(a) != "" || MAIL.Channel() != message.MAIL {
		t.Error("a kind has another kind's column")
	}
}
