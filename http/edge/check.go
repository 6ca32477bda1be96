package edge

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"castellan/http/rest"
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
	if o.BodyBudget == 0 {
		o.BodyBudget = defaultBodyBudget
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	o.BasePath = strings.TrimRight(o.BasePath, "/")
}

// check lists the faults that stop the start.
func (o *Options) check(endpoints []rest.Endpoint) (errs []error) {
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if rest.LanguageOf(o.DefaultLanguage) != o.DefaultLanguage {
		fail("default language %q is not tr, en or ar", o.DefaultLanguage)
	}
	if o.BasePath != "" && (canonical([]byte(o.BasePath)) != nil || strings.ContainsAny(o.BasePath, "?*:+()")) {
		fail("base path %q is not a plain path", o.BasePath)
	}
	known := map[string]*rest.Endpoint{}
	for i := range endpoints {
		e := &endpoints[i]
		key := e.Key()
		if known[key] != nil {
			fail("%s is defined twice", key)
		}
		known[key] = e
		if e.Credential != rest.NoAuth && o.Guards[e.Credential] == nil {
			fail("%s: no guard for the credential %q", key, e.Credential)
		}
		if !e.Credential.Known() {
			fail("%s: unknown credential %q", key, e.Credential)
		}
		if e.Audience == "" || e.Credential == rest.NoAuth && e.Audience != rest.Public {
			fail("%s: audience %q does not fit the credential %q", key, e.Audience, e.Credential)
		}
		if (e.Audience != rest.Public || e.IPFilter) && o.Authorize == nil {
			fail("%s: audience %q needs Authorize", key, e.Audience)
		}
		if e.IPFilter && e.Credential != rest.User && e.Credential != rest.Tenant {
			fail("%s: only endpoints with a session can have allowed addresses", key)
		}
		if e.Audience == rest.SelfOrAdmin && o.ActsAsAdmin == nil {
			fail("%s: audience %q needs ActsAsAdmin", key, e.Audience)
		}
		if e.Naming.Declared() && o.MayName == nil {
			fail("%s: an endpoint whose requests name users needs MayName", key)
		}
		if e.Reserved && e.Audience != rest.Admin {
			fail("%s: only the audience %q can be reserved", key, rest.Admin)
		}
		if e.OTP && o.Verify == nil {
			fail("%s: a verified endpoint needs Verify", key)
		}
		if e.Repeatable && o.Idempotency == nil {
			fail("%s: an idempotent endpoint needs Idempotency", key)
		}
		if e.BodyLimit > rest.DefaultBodyLimit && (e.Credential == rest.NoAuth || e.WantsBodyHash) {
			fail("%s: a body of more than %d bytes is read only after authentication", key, rest.DefaultBodyLimit)
		}
		if e.Starts != "" && o.Starter == nil {
			fail("%s: an endpoint that starts a challenge needs Starter", key)
		}
		if e.Governs != nil && (rest.Solo(*e) != "" || o.Governs != nil && o.SecondPerson == nil) {
			fail("%s: the money policy may ask for a second person, for whom the call cannot wait", key)
		}
		if e.PairedIf != nil && (o.SecondPerson == nil || rest.Solo(*e) != "") {
			fail("%s: an endpoint of which calls need a second person needs SecondPerson; %s", key, rest.Solo(*e))
		}
	}
	for key, action := range o.Guarded {
		e := known[key]
		switch {
		case e == nil:
			fail("guarded: %q is no endpoint", key)
		case rest.Unguardable(*e) != "":
			fail("guarded: %s %s", key, rest.Unguardable(*e))
		case action == "":
			fail("guarded: %s has no action code", key)
		case o.Starter == nil:
			fail("guarded: %s needs Starter", key)
		}
	}
	for key := range o.FourEyes {
		e := known[key]
		switch {
		case e == nil:
			fail("four eyes: %q is no endpoint", key)
		case rest.Solo(*e) != "":
			fail("four eyes: %s %s", key, rest.Solo(*e))
		case o.SecondPerson == nil:
			fail("four eyes: %s needs SecondPerson", key)
		}
	}
	return errs
}
