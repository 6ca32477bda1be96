package message_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"castellan/domain/delivery/message"
	"castellan/domain/kit/storetest"
)

func TestStoredForm(t *testing.T) {
	want := message.Rendered{Channel: message.MAIL, To: "a@example.com", Subject: "ş", Text: strings.Repeat("x", 300),
		HTML: "<p>", Code: "012345", Language: "ar"}
	data, err := want.AppendBinary([]byte{7})
	if err != nil || data[0] != 7 {
		t.Fatal(err, "AppendBinary does not append")
	}
	data = data[1:]
	var got message.Rendered
	if err := got.UnmarshalBinary(data); err != nil || got != want {
		t.Fatalf("%v: %+q", err, []string{got.To, got.Subject, got.Text, got.HTML, got.Code, got.Language})
	}
	for n := range data {
		storetest.Fails(t, got.UnmarshalBinary(data[:n]), "", "the first", n, "bytes")
	}
	storetest.Fails(t, got.UnmarshalBinary(append(data, 0)), "", "a longer form")
	storetest.Fails(t, got.UnmarshalBinary(append([]byte{2}, data[1:]...)), "", "a newer form")
	storetest.Same(t, got, want, "after refused forms")
}

func FuzzStoredForm(f *testing.F) {
	data, _ := message.Rendered{Channel: message.SMS, Text: "x"}.AppendBinary(nil)
	f.Add(data)
	f.Add([]byte{1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		var m, again message.Rendered
		if m.UnmarshalBinary(data) != nil {
			return
		}
		b, _ := m.AppendBinary(nil)
		if err := again.UnmarshalBinary(b); err != nil || again != m {
			t.Fatalf("%v: %x became %x", err, data, b)
		}
	})
}

func TestContentDoesNotReachLogs(t *testing.T) {
	m := book(t).Render(message.MAIL, message.OTP, "en", "a@example.com", code("x"))
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("m", "message", m, "pointer", &m)
	for _, s := range []string{log.String(), fmt.Sprint(m), fmt.Sprintf("%v %+v %#v %s %q", m, m, m, m, m),
		fmt.Sprintf("%+v", &m)} {
		if strings.Contains(s, "012345") || strings.Contains(s, "a@example.com") || !strings.Contains(s, "MAIL") {
			t.Errorf("shown: %s", s)
		}
	}
}

func TestExpireAsDuration(t *testing.T) {
	b := book(t)
	for _, lang := range languages {
		words := map[string]string{}
		for seconds, forms := range map[string][3]string{
			"0":      {"0 saniye", "0 seconds", "0 ثانية"},
			"1":      {"1 saniye", "1 second", "ثانية واحدة"},
			"2":      {"2 saniye", "2 seconds", "ثانيتين"},
			"5":      {"5 saniye", "5 seconds", "5 ثوانٍ"},
			"45":     {"45 saniye", "45 seconds", "45 ثانية"},
			"60":     {"1 dakika", "1 minute", "دقيقة واحدة"},
			"119":    {"119 saniye", "119 seconds", "119 ثانية"},
			"120":    {"2 dakika", "2 minutes", "دقيقتين"},
			"179":    {"179 saniye", "179 seconds", "179 ثانية"},
			"180":    {"3 dakika", "3 minutes", "3 دقائق"},
			"239":    {"3 dakika", "3 minutes", "3 دقائق"},
			"600":    {"10 dakika", "10 minutes", "10 دقائق"},
			"660":    {"11 dakika", "11 minutes", "11 دقيقة"},
			"6000":   {"100 dakika", "100 minutes", "100 دقيقة"},
			"6180":   {"103 dakika", "103 minutes", "103 دقائق"},
			"86400":  {"1440 dakika", "1440 minutes", "1440 دقيقة"},
			"86401":  {"86401", "86401", "86401"},
			"999999": {"999999", "999999", "999999"},
			"12:30":  {"12:30", "12:30", "12:30"},
			"-60":    {"-60", "-60", "-60"},
			"":       {"", "", ""},
		} {
			words[seconds] = forms[map[string]int{"tr": 0, "en": 1, "ar": 2}[lang]]
		}
		for seconds, want := range words {
			m := b.Render(message.MAIL, message.OTP, lang, "", message.Values{"otp": "1", "expire": seconds})
			frame := map[string]string{"tr": "Kod %s geçerlidir.", "en": "It is valid for %s.",
				"ar": "الرمز صالح لمدة %s."}[lang]
			storetest.Contains(t, m.Text, fmt.Sprintf(frame, want), lang, seconds)
		}
	}
}

func TestRenderIsCheap(t *testing.T) {
	b := book(t)
	v := code("Giriş")
	for _, ch := range []message.Channel{message.SMS, message.MAIL} {
		if n := testing.AllocsPerRun(100, func() { b.Render(ch, message.OTP, "tr", "x", v) }); n > 1 {
			t.Errorf("%s: %v allocations", ch, n)
		}
	}
}

// A delivery error says whether a repeat can help and whether the message may have arrived. Any other error is
// temporary.
func TestDeliveryErrors(t *testing.T) {
	cause := errors.New("cause")
	for name, c := range map[string]struct {
		err                              error
		permanent, unsent, gone, timeout bool
	}{
		"another error":       {cause, false, false, false, false},
		"temporary":           {&message.DeliveryError{Err: cause}, false, false, false, false},
		"unsent":              {&message.DeliveryError{Err: cause, Unsent: true}, false, true, false, false},
		"late":                {&message.DeliveryError{Err: cause, Timeout: true}, false, false, false, true},
		"permanent":           {&message.DeliveryError{Err: cause, Permanent: true}, true, true, false, false},
		"gone":                {&message.DeliveryError{Err: cause, Permanent: true, Gone: true}, true, true, true, false},
		"gone, but temporary": {&message.DeliveryError{Err: cause, Gone: true}, false, false, false, false},
	} {
		for _, err := range []error{c.err, fmt.Errorf("send: %w", c.err)} {
			got := [4]bool{message.IsPermanent(err), message.IsUnsent(err), message.IsGone(err), message.IsTimeout(err)}
			if got != [4]bool{c.permanent, c.unsent, c.gone, c.timeout} || !errors.Is(err, cause) {
				t.Errorf("%s: %v", name, got)
			}
		}
	}
	for permanent, want := range map[bool]string{true: "not deliverable: cause", false: "not delivered for now: cause"} {
		if got := (&message.DeliveryError{Permanent: permanent, Err: cause}).Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A kind is sent at most once in its period. Only the names of kinds are kinds; the error names each other one and
// lists the kinds.
func TestKinds(t *testing.T) {
	var all []string
	for _, k := range message.Kinds() {
		all = append(all, string(k))
	}
	if err := message.CheckKinds(all); err != nil || len(all) == 0 {
		t.Errorf("%d kinds, %v", len(all), err)
	}
	for kind, want := range map[message.Kind]time.Duration{message.PushBound: 24 * time.Hour,
		message.UnderAttack: 24 * time.Hour, message.NewNetwork: time.Hour, message.DeviceAdded: 0, "none": 0} {
		storetest.Equal(t, kind.Once(), want, kind)
	}
	err := message.CheckKinds([]string{"x", all[0], "y"})
	if err == nil || strings.Count(err.Error(), "is not a kind of notice") != 2 || !strings.Contains(err.Error(), `"x"`) ||
		!strings.Contains(err.Error(), `"y"`) || !strings.Contains(err.Error(), strings.Join(all, ", ")) {
		t.Error(err)
	}
}
