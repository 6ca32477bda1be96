package sms_test

import (
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/outbound/sms"
)

func TestNewReportsEveryFault(t *testing.T) {
	good := func() sms.Config {
		return sms.Config{
			URL:    "https://sms.example.com/send",
			Method: "POST",
			Format: "form",
			From:   "x",
			Fields: map[string]string{"to": "{{to}}", "text": "{{text}}"},
		}
	}
	for name, change := range map[string]func(*sms.Config){
		"https":    func(*sms.Config) {},
		"loopback": func(c *sms.Config) { c.URL = "http://127.0.0.1:8080/x" },
		"IPv6":     func(c *sms.Config) { c.URL = "http://[::1]:8080/x" },
		"name":     func(c *sms.Config) { c.URL = "http://localhost/x" },
		"document": func(c *sms.Config) { c.Format, c.Fields, c.Body = "json", nil, `["{{to}}", "{{text}}"]` },
	} {
		cfg := good()
		change(&cfg)
		storetest.Is(t, storetest.Err(sms.New(cfg)), nil, name)
	}
	for part, change := range map[string]func(*sms.Config){
		"url: not an absolute":         func(c *sms.Config) { c.URL = "/send?token=s3cret" },
		"url: not an absolute address": func(c *sms.Config) { c.URL = "https://%zz/?token=s3cret" },
		"url: not an absolute addr":    func(c *sms.Config) { c.URL = "https://:443/" },
		"url: must be https":           func(c *sms.Config) { c.URL = "http://sms.example.com/?token=s3cret" },
		"url: must be https,":          func(c *sms.Config) { c.URL = "ftp://127.0.0.1/" },
		"url: must be https, or":       func(c *sms.Config) { c.URL = "http://localhost.example.com/" },
		"url: must be https, or http":  func(c *sms.Config) { c.URL = "http://169.254.169.254/" },
		"url: use username":            func(c *sms.Config) { c.URL = "https://u:hunter2@sms.example.com/" },
		"url: a fragment":              func(c *sms.Config) { c.URL = "https://sms.example.com/#x" },
		"method GET goes":              func(c *sms.Config) { c.Method, c.Format = "GET", "json" },
		"either fields or":             func(c *sms.Config) { c.Fields = nil },
		"either fields or,":            func(c *sms.Config) { c.Body, c.Format = "{}", "json" },
		"either fields or, with":       func(c *sms.Config) { c.Body, c.Fields = `"{{to}}{{text}}"`, nil },
		"not one JSON": func(c *sms.Config) {
			c.Fields, c.Format, c.Body = nil, "json",
				`{"a":"{{to}}{{text}}"} }`
		},
		"not one JSON doc":             func(c *sms.Config) { c.Fields, c.Format, c.Body = nil, "json", `{"a":{{to}}}` },
		"uses {{to}}":                  func(c *sms.Config) { c.Fields = map[string]string{"text": "{{text}}"} },
		"uses {{text}}":                func(c *sms.Config) { c.Fields = map[string]string{"to": "{{to}}"} },
		"uses {{from}}":                func(c *sms.Config) { c.From, c.Fields["f"] = "", "{{from}}" },
		`unknown placeholder "code"`:   func(c *sms.Config) { c.Fields["c"] = "{{code}}" },
		`headers "X-T": unknown`:       func(c *sms.Config) { c.Headers = map[string]string{"X-T": "{{text}}"} },
		`headers "Host" cannot`:        func(c *sms.Config) { c.Headers = map[string]string{"Host": "x"} },
		`headers "a b" cannot`:         func(c *sms.Config) { c.Headers = map[string]string{"a b": "x"} },
		`headers "X-T" contains`:       func(c *sms.Config) { c.Headers = map[string]string{"X-T": "a\r\nb"} },
		`headers "idempotency-key" is`: func(c *sms.Config) { c.Headers = map[string]string{"idempotency-key": "x"} },
		"exclude each other": func(c *sms.Config) {
			c.Username, c.Password, c.Headers = "u", "hunter2", map[string]string{"Authorization": "x"}
		},
		"must be set together":     func(c *sms.Config) { c.Password = "hunter2" },
		"from must not":            func(c *sms.Config) { c.From = "a\nb" },
		"success_codes: 404":       func(c *sms.Config) { c.SuccessCodes = []int{200, 404} },
		"either a success pattern": func(c *sms.Config) { c.Success.Pattern, c.Success.Field = "x", "a" },
		"must be given together":   func(c *sms.Config) { c.Success.Field = "a" },
		"must be given together\n": func(c *sms.Config) { c.Success.Values = []string{"a"} },
		"not a regular expression": func(c *sms.Config) { c.Success.Pattern = "hunter2(" },
		"matches an empty body":    func(c *sms.Config) { c.Success.Pattern = "^0*" },
		"has an empty step":        func(c *sms.Config) { c.Success = sms.Success{Field: "a..b", Values: []string{"c"}} },
		"ca_file: open":            func(c *sms.Config) { c.CAFile = "no/such/file" },
		"ca_file: the file":        func(c *sms.Config) { c.CAFile = "sms_test.go" },
		"preset twilio defines": func(c *sms.Config) {
			c.Preset, c.Username, c.Password = "twilio", "u",
				"hunter2"
		},
		"preset twilio needs":            func(c *sms.Config) { c.Preset, c.Fields = "twilio", nil },
		"url: not an absolute address\n": func(c *sms.Config) { c.URL, c.From = "", "a\nb" },
	} {
		cfg := good()
		change(&cfg)
		s, err := sms.New(cfg)
		if err == nil || s != nil || !strings.Contains(err.Error()+"\n", part) || strings.Contains(err.Error(), "hunter2") ||
			strings.Contains(err.Error(), "s3cret") {
			t.Errorf("want %q, got %v", part, err)
		}
	}
}
