package mail_test

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	netmail "net/mail"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"castellan/domain/delivery/message"
	"castellan/domain/kit/storetest"
	"castellan/outbound/mail"
)

var clock = time.Date(2026, 11, 21, 10, 30, 0, 0, time.UTC)

// newSender returns a sender for a relay with a certificate of ca.
func newSender(t *testing.T, r *relay, ca *authority, change func(*mail.Config)) *mail.Sender {
	t.Helper()
	cfg := mail.Config{Host: "127.0.0.1", Port: r.port, From: "no-reply@id.example.com", FromName: "Kale Güvenlik",
		TLS: mail.STARTTLS, Timeout: 5 * time.Second, Connections: 4, Now: func() time.Time { return clock }}
	if ca != nil {
		cfg.CAFile = ca.file
	}
	if change != nil {
		change(&cfg)
	}
	s := storetest.Value(mail.New(cfg))(t)
	t.Cleanup(func() { s.Close() })
	return s
}

func rendered(lang string) message.Rendered {
	b, err := message.NewBook("Castellan", nil)
	if err != nil {
		panic(err)
	}
	return b.Render(message.MAIL, message.OTP, lang, "user@example.org",
		message.Values{"otp": "012345", "action": "Giriş & çıkış", "expire": "120"})
}

func secured(t *testing.T) (*relay, *authority) {
	t.Helper()
	ca := newAuthority(t)
	return newRelay(t, ca.issue(t, "127.0.0.1"), false), ca
}

// checkFailure requires a DeliveryError of a class, without confidential content.
func checkFailure(t *testing.T, err error, permanent bool, part string) {
	t.Helper()
	var d *message.DeliveryError
	if !errors.As(err, &d) || d.Permanent != permanent {
		t.Fatalf("want a delivery error with permanent=%v, got %v", permanent, err)
	}
	storetest.Contains(t, err.Error(), part)
	for _, secret := range []string{"012345", "user@example.org", relayPassword, "Giriş"} {
		storetest.Lacks(t, err.Error(), secret)
	}
}

func TestContent(t *testing.T) {
	for _, implicit := range []bool{false, true} {
		ca := newAuthority(t)
		r := newRelay(t, ca.issue(t, "127.0.0.1"), implicit)
		s := newSender(t, r, ca, func(c *mail.Config) {
			c.Username, c.Password = relayUser, relayPassword
			if implicit {
				c.TLS = mail.TLS
			}
		})
		m := rendered("ar")
		m.Text += ".\n.hidden\n" + strings.Repeat("long ", 300)
		storetest.Must(t, s.Send(t.Context(), "01J9.MAIL:1", m))
		inbox := r.messages()
		if len(inbox) != 1 {
			t.Fatalf("%d messages", len(inbox))
		}
		got := inbox[0]
		if got.from != "no-reply@id.example.com" || got.to != "user@example.org" || got.user != relayUser || !got.secure ||
			got.utf8 {
			t.Errorf("envelope %q %q user %q secure %v utf8 %v", got.from, got.to, got.user, got.secure, got.utf8)
		}
		parsed := storetest.Value(netmail.ReadMessage(strings.NewReader(got.data)))(t)
		h := parsed.Header
		for name, want := range map[string]string{
			"Message-Id": "<01J9.MAIL=3A1@id.example.com>", "To": "<user@example.org>", "Mime-Version": "1.0",
			"Auto-Submitted": "auto-generated", "Content-Language": "ar", "Date": "Sat, 21 Nov 2026 10:30:00 +0000",
			"X-Mailer": "", "User-Agent": "",
		} {
			storetest.Equal(t, h.Get(name), want, name)
		}
		from, err := h.AddressList("From")
		if err != nil || len(from) != 1 || from[0].Name != "Kale Güvenlik" || from[0].Address != "no-reply@id.example.com" {
			t.Errorf("From %v %v", from, err)
		}
		if subject, err := new(mime.WordDecoder).DecodeHeader(h.Get("Subject")); err != nil || subject != m.Subject {
			t.Errorf("subject %q, want %q", subject, m.Subject)
		}
		checkParts(t, parsed, m)
		for _, line := range strings.Split(got.data, "\r\n") {
			if len(line) > 998 || strings.ContainsFunc(line, func(r rune) bool { return r > 126 || r == '\r' || r == '\n' }) {
				t.Errorf("line unfit for any relay: %q", line)
			}
		}
	}
}

func checkParts(t *testing.T, parsed *netmail.Message, m message.Rendered) {
	t.Helper()
	kind, params, err := mime.ParseMediaType(parsed.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/alternative" {
		t.Fatalf("content type %q %v", kind, err)
	}
	parts := multipart.NewReader(parsed.Body, params["boundary"])
	for _, want := range []struct{ kind, content string }{{"text/plain", m.Text}, {"text/html", m.HTML}} {
		p := storetest.Value(parts.NextRawPart())(t)
		kind, params, _ := mime.ParseMediaType(p.Header.Get("Content-Type"))
		if kind != want.kind || !strings.EqualFold(params["charset"], "utf-8") {
			t.Errorf("part %q %v", kind, params)
		}
		body := storetest.Value(io.ReadAll(quotedprintable.NewReader(p)))(t)
		got := strings.TrimRight(strings.ReplaceAll(string(body), "\r\n", "\n"), "\n")
		storetest.Equal(t, got, strings.TrimRight(want.content, "\n"), kind)
	}
	storetest.Is(t, storetest.Err(parts.NextPart()), io.EOF, "more parts")
}

func TestTextOnly(t *testing.T) {
	r, ca := secured(t)
	m := rendered("en")
	m.HTML = ""
	storetest.Must(t, newSender(t, r, ca, nil).Send(t.Context(), "1", m))
	if data := r.messages()[0].data; !strings.Contains(data, "Content-Type: text/plain") ||
		strings.Contains(data, "multipart") {
		t.Errorf("%s", data)
	}
}

func TestRefusals(t *testing.T) {
	r, ca := secured(t)
	s := newSender(t, r, ca, nil)
	for _, c := range []struct {
		stage     string
		code      int
		enhanced  smtp.EnhancedCode
		permanent bool
		part      string
	}{
		{"mail", 451, smtp.EnhancedCode{4, 3, 0}, false, "sender: server answered 451 4.3.0 words"},
		{"mail", 550, smtp.EnhancedCode{5, 7, 1}, true, "sender: server answered 550 5.7.1 words"},
		{"mail", 530, smtp.EnhancedCode{5, 7, 0}, false, "530"},
		{"rcpt", 450, smtp.EnhancedCode{4, 2, 1}, false, "recipient: server answered 450 4.2.1"},
		{"rcpt", 550, smtp.EnhancedCode{5, 1, 1}, true, "recipient: server answered 550 5.1.1"},
		{"rcpt", 552, smtp.EnhancedCode{5, 2, 2}, false, "552"},
		{"data", 421, smtp.EnhancedCode{4, 3, 2}, false, "421"},
		{"data", 452, smtp.EnhancedCode{4, 3, 1}, false, "452"},
		{"data", 554, smtp.EnhancedCode{5, 6, 0}, true, "content: server answered 554 5.6.0"},
	} {
		refuse := reply(c.code, c.enhanced, "words about user@example.org")
		r.onMail, r.onRcpt, r.onData = nil, nil, nil
		switch c.stage {
		case "mail":
			refuse = reply(c.code, c.enhanced, "words")
			r.onMail = func(*smtp.Conn, int) error { return refuse }
		case "rcpt":
			r.onRcpt = func(string) error { return refuse }
		case "data":
			r.onData = func(_ *smtp.Conn, data string) error { return reply(c.code, c.enhanced, "your mail says 012345") }
		}
		t.Run(fmt.Sprint(c.stage, c.code), func(t *testing.T) {
			checkFailure(t, s.Send(t.Context(), "1", rendered("en")), c.permanent, c.part)
			r.onMail, r.onRcpt, r.onData = nil, nil, nil
			storetest.Is(t, s.Send(t.Context(), "2", rendered("en")), nil, "the next message")
		})
	}
	if connections, _ := r.counts(); connections != 2 { // 421 closes one
		t.Errorf("%d connections for refusals that leave them whole", connections)
	}
	storetest.Equal(t, len(r.messages()), 9, "messages arrived, want those that were not refused")
}

func TestInjection(t *testing.T) {
	r, ca := secured(t)
	s := newSender(t, r, ca, nil)
	for name, change := range map[string]func(*message.Rendered){
		"subject":         func(m *message.Rendered) { m.Subject = "a\r\nBcc: evil@example.net" },
		"subject LF":      func(m *message.Rendered) { m.Subject = "a\nBcc: evil@example.net" },
		"to header":       func(m *message.Rendered) { m.To = "user@example.org\r\nBcc: evil@example.net" },
		"to command":      func(m *message.Rendered) { m.To = "user@example.org>\r\nRCPT TO:<evil@example.net" },
		"to parameter":    func(m *message.Rendered) { m.To = "user@example.org> NOTIFY=SUCCESS" },
		"two recipients":  func(m *message.Rendered) { m.To = "user@example.org, evil@example.net" },
		"named recipient": func(m *message.Rendered) { m.To = "Evil <evil@example.net>" },
		"comment":         func(m *message.Rendered) { m.To = "user@example.org (hello)" },
		"no recipient":    func(m *message.Rendered) { m.To = "" },
		"not an address":  func(m *message.Rendered) { m.To = "user" },
		"long address":    func(m *message.Rendered) { m.To = strings.Repeat("u", 250) + "@example.org" },
		"no text":         func(m *message.Rendered) { m.Text = "" },
		"other channel":   func(m *message.Rendered) { m.Channel = message.SMS },
	} {
		m := rendered("en")
		change(&m)
		t.Run(name, func(t *testing.T) { checkFailure(t, s.Send(t.Context(), "1", m), true, "mail: ") })
	}
	checkFailure(t, s.Send(t.Context(), "", rendered("en")), true, "without an id")
	if connections, _ := r.counts(); connections != 0 {
		t.Error("a connection was made for a message that cannot be sent")
	}

	m := rendered("en")
	m.Language = "en\r\nBcc: evil@example.net"
	m.Text = "body\r\n.\r\nMAIL FROM:<evil@example.net>\r\n"
	storetest.Must(t, s.Send(t.Context(), "x\r\nBcc: <evil@example.net>", m))
	storetest.Must(t, s.Send(t.Context(), strings.Repeat("..x", 200), m))
	inbox := r.messages()
	if len(inbox) != 2 {
		t.Fatalf("%d messages", len(inbox))
	}
	for i, id := range []string{"<x=0D=0ABcc=3A=20=3Cevil=40example.net=3E@id.example.com>", "@id.example.com>"} {
		parsed := storetest.Value(netmail.ReadMessage(strings.NewReader(inbox[i].data)))(t)
		if got := parsed.Header.Get("Message-Id"); !strings.HasSuffix(got, id) || len(got) > 250 ||
			parsed.Header.Get("Bcc") != "" || parsed.Header.Get("Content-Language") != "" {
			t.Errorf("headers %v", parsed.Header)
		}
	}
}

func TestAddressesBeyondASCII(t *testing.T) {
	ca := newAuthority(t)
	m := rendered("tr")
	m.To = "kullanıcı@örnek.example"
	plain := newRelay(t, ca.issue(t, "127.0.0.1"), false)
	checkFailure(t, newSender(t, plain, ca, nil).Send(t.Context(), "1", m), true, "beyond ASCII")

	able := newRelay(t, ca.issue(t, "127.0.0.1"), false, func(s *smtp.Server) { s.EnableSMTPUTF8 = true })
	s := newSender(t, able, ca, nil)
	storetest.Must(t, s.Send(t.Context(), "1", m))
	storetest.Must(t, s.Send(t.Context(), "2", rendered("tr")))
	inbox := able.messages()
	if len(inbox) != 2 || inbox[0].to != m.To || !inbox[0].utf8 || inbox[1].utf8 {
		t.Errorf("%+v", inbox)
	}
}

func TestNewReportsEveryFault(t *testing.T) {
	if _, err := mail.New(mail.Config{Host: "mail.example.net", From: "a@example.com"}); err != nil {
		t.Errorf("the least configuration: %v", err)
	}
	for part, cfg := range map[string]mail.Config{
		"host must":             {From: "a@example.com"},
		"loopback address only": {Host: "mail.example.net", From: "a@example.com", TLS: mail.None},
		"unencrypted connection": {Host: "localhost", From: "a@example.com", TLS: mail.None, Username: "u",
			Password: "secret"},
		"must be set together":        {Host: "h", From: "a@example.com", Password: "secret"},
		"bare ASCII address":          {Host: "h", From: "A <a@example.com>"},
		"from must":                   {Host: "h", From: "a@example.com\r\nBcc: b@example.com"},
		"from_name":                   {Host: "h", From: "a@example.com", FromName: "a\nb"},
		"ca_file: open":               {Host: "h", From: "a@example.com", CAFile: "no/such/file"},
		"ca_file: the file contains":  {Host: "h", From: "a@example.com", CAFile: "mail_test.go"},
		"host must name the server\n": {From: "x"},
	} {
		s, err := mail.New(cfg)
		if err == nil || s != nil || !strings.Contains(err.Error(), part) || strings.Contains(err.Error(), "secret") {
			t.Errorf("want %q, got %v", part, err)
		}
	}
}
