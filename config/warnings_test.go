package config

import (
	"strings"
	"testing"
	"time"
)

func TestWarnings(t *testing.T) {
	full := "mail: {host: localhost, from: a@example.com}\nsms: {preset: twilio, username: u, password: p, sender: s}\n"
	for _, tc := range []struct {
		text string
		want []string // a part of each warning, in order
	}{
		{full, nil},
		{"", []string{"mail.host is empty", "sms.url is empty"}},
		{"dev: true\npassword: {argon2_memory_kib: 8, argon2_time: 1}", nil},
		{full + "password: {argon2_memory_kib: 8, argon2_time: 1}", []string{"below the OWASP minimum"}},
		{full + "password: {argon2_memory_kib: 19455}", []string{"below the OWASP minimum"}},
		{full + "password: {argon2_memory_kib: 12288, argon2_time: 3}", nil},
		{full + "password: {argon2_memory_kib: 47104, argon2_time: 1}", nil},
		{full + "http: {public_url: 'http://id.example.com'}", []string{"not https"}},
		{full + "http: {addr: '0.0.0.0:80'}", []string{"only guessed from http.addr"}},
		{full + "http: {public_url: 'https://id.example.com'}", []string{"http.trusted_proxies is empty"}},
		{full + "http: {public_url: 'https://id.example.com', trusted_proxies: [10.0.0.1]}", nil},
		{full + "http: {country_header: cf-ipcountry}", []string{"http.country_header has no effect"}},
		{full + "http: {max_connections_per_ip: 50, trusted_proxies: [10.0.0.0/8]}",
			[]string{"http.max_connections_per_ip also bounds"}},
		{full + "http: {max_connections_per_ip: 50}", nil},
		{full + "firewall: {bypass_cidrs: ['::/0']}", []string{"no request rule applies"}},
		{full + "mfa: {guarded: {POST /asset/withdrawal-addresses: ADD}}",
			[]string{"without PATCH /asset/withdrawal-addresses"}},
		{full + "mfa: {guarded: {POST /asset/withdrawal-addresses: ADD, PATCH /asset/withdrawal-addresses: CHANGE}}", nil},
		{full + "push: {allow_private: true}", []string{"push.allow_private without push.hosts"}},
		{full + "push: {allow_private: true, hosts: [hooks.internal]}", nil},
		{full + "push: {allow_private: true, enabled: false}", nil},
		{full + "cluster: {join: ['a:1']}", []string{"cluster.join has no effect"}},
		{full + "database: {url: 'postgres://a/b'}\n" +
			"cluster: {gossip_addr: '127.0.0.1:1', actor_addr: '127.0.0.1:2', tls_dir: /t}",
			[]string{"files.s3_url is empty"}},
	} {
		got := load(t, tc.text).Warnings()
		if len(got) != len(tc.want) {
			t.Errorf("%q: %q", tc.text, got)
			continue
		}
		for i := range got {
			if !strings.Contains(got[i], tc.want[i]) {
				t.Errorf("%q: %q, want %q", tc.text, got[i], tc.want[i])
			}
		}
	}
}

// A short lease needs no word about wake-ups.
func TestWakeUpsFitTheLease(t *testing.T) {
	for lease, want := range map[string]time.Duration{"31s": 3 * time.Second, "3s": 1500 * time.Millisecond,
		"2s": time.Second} {
		c := load(t, "outbox: {lease: "+lease+"}\nmail: {timeout: 1s}\nsms: {timeout: 1s}\n")
		if c.Push.Timeout != want {
			t.Errorf("lease %s: %v, want %v", lease, c.Push.Timeout, want)
		}
	}
}
