package stepup

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/delivery/message"
	"castellan/domain/delivery/notification"
	"castellan/domain/delivery/outbox"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/storetest"
)

// post is a Dispatcher of some channels that keeps its messages.
type post struct {
	channels map[message.Channel]bool
	rows     []outbox.Message
	texts    []message.Rendered
}

func (p *post) Offers(c message.Channel) bool { return p.channels[c] }

func (p *post) Deliver(m outbox.Message, r message.Rendered) {
	p.rows, p.texts = append(p.rows, m), append(p.texts, r)
}

func TestNotice(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	ring := keyringtest.Ring(t, time.Now)
	book := storetest.Value(message.NewBook("Castellan", nil))(t)
	all := challenge.Account{UserID: "u1", Phone: "+905320000001", Dial: "90", Mail: "a@example.com", Language: "tr"}
	phone, nobody := all, all
	phone.Mail, nobody.Mail, nobody.Phone = "", "", ""
	for _, c := range []struct {
		name    string
		to      challenge.Account
		offered []message.Channel
		kind    message.Kind
		channel message.Channel
		dest    string
	}{
		{"mail first", all, []message.Channel{message.MAIL, message.SMS}, message.RecoveryUsed, message.MAIL, all.Mail},
		{"no address", phone, []message.Channel{message.MAIL, message.SMS}, message.RecoveryUsed, message.SMS, all.Phone},
		{"no mail sender", all, []message.Channel{message.SMS}, message.RecoveryUsed, message.SMS, all.Phone},
		{"no channel", phone, []message.Channel{message.MAIL}, message.RecoveryUsed, "", ""},
		{"nobody", nobody, []message.Channel{message.MAIL, message.SMS}, message.RecoveryUsed, "", ""},
		{"once", all, []message.Channel{message.MAIL, message.SMS}, message.UnderAttack, message.MAIL, all.Mail},
		{"once, no address", phone, []message.Channel{message.MAIL, message.SMS}, message.UnderAttack, "", ""},
		{"switched off", all, []message.Channel{message.MAIL, message.SMS}, message.NewNetwork, "", ""},
	} {
		p := &post{channels: map[message.Channel]bool{}}
		for _, ch := range c.offered {
			p.channels[ch] = true
		}
		s := &Messenger{Config: Config{Lease: 30 * time.Second, DialDay: map[string]int{"90": 5}, Language: "en",
			Silent: map[message.Kind]bool{message.NewNetwork: true}},
			Book: book, Ring: ring, Dispatch: p, Now: func() time.Time { return now }}
		writes := s.Notice(c.to, c.kind, nil, "203.0.113.9")
		if c.channel == "" {
			storetest.Equal(t, len(writes), 0, c.name, writes)
			continue
		}
		if len(writes) != 1 || len(p.rows) != 0 {
			t.Fatalf("%s: %v, %v", c.name, writes, p.rows)
		}
		m := outbox.Message{}
		if once, is := writes[0].(outbox.AddOnce); is {
			m = once.Message
		} else {
			m = writes[0].(outbox.Add).Message
		}
		if m.ID == "" || m.ChallengeID != "" || m.UserID != "u1" || m.Channel != c.channel ||
			m.State != outbox.Queued || !m.Proven ||
			m.Prefix != "203.0.113.9/32" || (m.Dial == "90") != (c.channel == message.SMS) ||
			!m.LeaseUntil.Equal(now) || !m.ExpiresAt.Equal(now.Add(24*time.Hour)) {
			t.Errorf("%s: row %+v", c.name, m)
		}
		// A sender opens the payload with only the fields of its row.
		plain, err := ring.Open(m.Payload, challenge.PayloadData(m.ChallengeID, m.MethodID, m.Generation))
		var text message.Rendered
		if err != nil || text.UnmarshalBinary(plain) != nil {
			t.Fatalf("%s: payload: %v", c.name, err)
		}
		if text.To != c.dest || text.Language != "tr" || text.Code != "" || bytes.Contains(m.Payload, []byte(c.dest)) ||
			c.channel == message.MAIL && !strings.Contains(text.Text, "2023-11-14 22:13 UTC") {
			t.Errorf("%s: to %s in %s: %s", c.name, text.To, text.Language, text.Text)
		}
		if _, err := ring.Open(m.Payload, challenge.PayloadData("", "", 0)); err == nil {
			t.Errorf("%s: the payload is bound to nothing", c.name)
		}
	}
}

// A decision is reported inside the account and on every named channel that the account has.
func TestTell(t *testing.T) {
	book := storetest.Value(message.NewBook("Castellan", nil))(t)
	p := &post{channels: map[message.Channel]bool{message.MAIL: true, message.SMS: true}}
	now := time.UnixMilli(1_700_000_000_000)
	s := &Messenger{Config: Config{Language: "en"}, Book: book, Ring: keyringtest.Ring(t, time.Now), Dispatch: p,
		Now: func() time.Time { return now }}
	to := challenge.Account{UserID: "u1", Phone: "+905320000001", Dial: "90", Mail: "a@example.com"}
	noPhone := to
	noPhone.Phone = ""
	for _, c := range []struct {
		to   challenge.Account
		on   []challenge.Name
		want []message.Channel
	}{
		{to, []challenge.Name{challenge.MAIL}, []message.Channel{message.MAIL}},
		{to, []challenge.Name{challenge.MAIL, challenge.SMS}, []message.Channel{message.MAIL, message.SMS}},
		{noPhone, []challenge.Name{challenge.MAIL, challenge.SMS}, []message.Channel{message.MAIL}},
	} {
		writes := s.Notify(c.to, "kyc", message.KYCRejected, message.Values{"reason": "A & B:\nblurred"}, "203.0.113.9",
			c.on...)
		inside := writes[0].(notification.Add)
		if inside.UserID != "u1" || inside.Topic != "kyc" || inside.Title != "Your Castellan identity was not confirmed" ||
			inside.Body != "Your identity was checked and could not be confirmed. A & B:\nblurred" {
			t.Errorf("inside the account: %+v", inside)
		}
		var on []message.Channel
		for _, w := range writes[1:] {
			m := w.(outbox.Add).Message
			if on = append(on, m.Channel); !m.LeaseUntil.Equal(now) || m.State != outbox.Queued || len(p.rows) > 0 {
				t.Errorf("%+v", m)
			}
		}
		if !slices.Equal(on, c.want) {
			t.Errorf("notified on %v, want %v", on, c.want)
		}
	}
}

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
