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
		refuse := func(when bool, format string, args ...any) {
			if when {
				fail("%s: %s", e.Key(), fmt.Sprintf(format, args...))
			}
		}
		refuse(known[e.Key()] != nil, "is defined twice")
		known[e.Key()] = e
		refuse(e.Credential != rest.NoAuth && o.Guards[e.Credential] == nil, "no guard for the credential %q", e.Credential)
		refuse(!e.Credential.Known(), "unknown credential %q", e.Credential)
		refuse(e.Audience == "" || e.Credential == rest.NoAuth && e.Audience != rest.Public,
			"audience %q does not fit the credential %q", e.Audience, e.Credential)
		refuse((e.Audience != rest.Public || e.IPFilter) && o.Authorize == nil, "audience %q needs Authorize", e.Audience)
		refuse(e.IPFilter && e.Credential != rest.User && e.Credential != rest.Tenant,
			"only endpoints with a session can have allowed addresses")
		refuse(e.Audience == rest.SelfOrAdmin && o.ActsAsAdmin == nil, "audience %q needs ActsAsAdmin", e.Audience)
		refuse(e.Naming.Declared() && o.MayName == nil, "an endpoint whose requests name users needs MayName")
		refuse(e.Reserved && e.Audience != rest.Admin, "only the audience %q can be reserved", rest.Admin)
		refuse(e.OTP && o.Verify == nil, "a verified endpoint needs Verify")
		refuse(e.Repeatable && o.Idempotency == nil, "an idempotent endpoint needs Idempotency")
		refuse(e.BodyLimit > rest.DefaultBodyLimit && (e.Credential == rest.NoAuth || e.WantsBodyHash),
			"a body of more than %d bytes is read only after authentication", rest.DefaultBodyLimit)
		refuse(e.Starts != "" && o.Starter == nil, "an endpoint that starts a challenge needs Starter")
		refuse(e.Governs != nil && (rest.Solo(*e) != "" || o.Governs != nil && o.SecondPerson == nil),
			"the money policy may ask for a second person, for whom the call cannot wait")
		refuse(e.PairedIf != nil && (o.SecondPerson == nil || rest.Solo(*e) != ""),
			"an endpoint of which calls need a second person needs SecondPerson; %s", rest.Solo(*e))
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
