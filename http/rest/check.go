package rest

import (
	"fmt"
	"log/slog"
	"strings"
	"time"
)

func (o *Options) fill() {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.DefaultLanguage == "" {
		o.DefaultLanguage = "en"
	}
	if o.BodyLimit == 0 {
		o.BodyLimit = defaultBodyLimit
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	o.BasePath = strings.TrimRight(o.BasePath, "/")
}

// check finds what must stop the start.
func (o *Options) check(endpoints []Endpoint) (errs []error) {
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if languageOf(o.DefaultLanguage) != o.DefaultLanguage {
		fail("default language %q is not tr, en or ar", o.DefaultLanguage)
	}
	if o.BasePath != "" && (canonical([]byte(o.BasePath)) != nil || strings.ContainsAny(o.BasePath, "?*:+()")) {
		fail("base path %q is not a plain path", o.BasePath)
	}
	known := map[string]*Endpoint{}
	for i := range endpoints {
		e := &endpoints[i]
		key := e.Key()
		if known[key] != nil {
			fail("%s is defined twice", key)
		}
		known[key] = e
		if e.Credential != NoAuth && o.Guards[e.Credential] == nil {
			fail("%s: no guard for the credential %q", key, e.Credential)
		}
		if _, ok := strictest[e.Credential]; !ok {
			fail("%s: unknown credential %q", key, e.Credential)
		}
		if e.Audience == "" || e.Credential == NoAuth && e.Audience != Public {
			fail("%s: audience %q does not fit the credential %q", key, e.Audience, e.Credential)
		}
		if (e.Audience != Public || e.IPFilter) && o.Authorize == nil {
			fail("%s: audience %q needs Authorize", key, e.Audience)
		}
		if e.IPFilter && e.Credential != User && e.Credential != Tenant {
			fail("%s: only who has a session has a list of allowed addresses", key)
		}
		if e.Audience == SelfOrAdmin && o.ActsAsAdmin == nil {
			fail("%s: audience %q needs ActsAsAdmin", key, e.Audience)
		}
		if e.Reserved && e.Audience != Admin {
			fail("%s: only the audience %q can be reserved", key, Admin)
		}
		if e.OTP && o.Verify == nil {
			fail("%s: a verified endpoint needs Verify", key)
		}
		if e.Repeatable && o.Idempotency == nil {
			fail("%s: an idempotent endpoint needs Idempotency", key)
		}
		if e.Starts != "" && o.Starter == nil {
			fail("%s: an endpoint that starts a challenge needs Starter", key)
		}
	}
	for key, action := range o.Guarded {
		e := known[key]
		switch {
		case e == nil:
			fail("guarded: %q is no endpoint", key)
		case Unguardable(*e) != "":
			fail("guarded: %s %s", key, Unguardable(*e))
		case action == "":
			fail("guarded: %s has no action code", key)
		case o.Starter == nil:
			fail("guarded: %s needs Starter", key)
		}
	}
	return errs
}

// Unguardable says why no challenge can be put in front of an endpoint (D-2FA-28);
// "" where it can.
func Unguardable(e Endpoint) string {
	switch {
	case e.Starts != "":
		return "starts a challenge itself"
	case e.Credential != User && e.Credential != Tenant:
		return "does not take x-auth"
	}
	return ""
}
