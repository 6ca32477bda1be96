package doctor

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"castellan/cmd/app/adapters"
	"castellan/config"
	"castellan/domain/account/user"
	"castellan/domain/delivery/message"
	"castellan/domain/factor/mfa"
	"castellan/domain/kit/legible"
	httpapi "castellan/http"
	"castellan/http/rest"
)

// Check returns the faults of settings that only their own parts can validate: required files, templates, endpoints. It
// is passed to config.Load, so that all faults are reported together and before anything opens.
func Check(c config.Config) (faults config.Faults) {
	refuse := func(key string, err error) {
		if err == nil {
			return
		}
		text := strings.TrimPrefix(err.Error(), key+": ") // a part that names itself
		for problem := range strings.SplitSeq(text, "\n") {
			faults = append(faults, config.Fault{Key: key, Problem: problem})
		}
	}
	if c.Mail.Configured() {
		_, err := adapters.Mail(c)
		refuse("mail", err)
	}
	if c.SMS.Configured() {
		_, err := adapters.SMS(c.SMS)
		refuse("sms", err)
	}
	if c.Rates.URL != "" {
		_, err := adapters.Rates(c.Rates)
		refuse("rates", err)
	}
	if err := readable(c.Providers.CAFile); err != nil && len(c.Providers.Accounts) > 0 {
		refuse("providers.ca_file", err)
	} else {
		_, err = adapters.Balances(c.Providers)
		refuse("providers", err)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Providers.Files)) {
		refuse("providers.files", readable(c.Providers.Files[name]))
	}
	if c.KYC.IdentityURL != "" {
		_, err := adapters.Identity(c, nil)
		refuse("kyc", err)
	}
	for _, file := range []struct {
		key, name string
		used      bool
	}{{"push.ca_file", c.Push.CAFile, c.Push.Enabled}, {"files.s3_ca_file", c.Files.S3CAFile, c.Files.S3URL != ""},
		{"accounting.ca_file", c.Accounting.CAFile, c.Accounting.URL != ""},
		{"audit.anchor_ca_file", c.Audit.AnchorCAFile, c.Audit.AnchorURL != ""},
		{"guard.ca_file", c.Guard.CAFile, len(c.Guard.Issuers) > 0},
		{"limits.rls_cert_file", c.Limits.RLSCertFile, c.Limits.RLSAddr != ""},
		{"limits.rls_key_file", c.Limits.RLSKeyFile, c.Limits.RLSAddr != ""}} {
		if file.used {
			refuse(file.key, readable(file.name))
		}
	}
	refuse("notices.off", message.CheckKinds(c.Notices.Off))
	for _, key := range slices.Sorted(maps.Keys(c.Doctor.Accepted)) {
		if !legible.Valid(c.Doctor.Accepted[key]) || strings.TrimSpace(c.Doctor.Accepted[key]) == "" {
			refuse("doctor.accepted", fmt.Errorf("%s needs a reason, in one line", key))
		}
	}
	refuse("geo.mmdb_file", readable(c.Geo.MMDBFile)) // the file is large: it is read when it is needed

	if len(c.MFA.Guarded)+len(c.MFA.FourEyes) == 0 {
		return faults
	}
	endpoints := map[string]rest.Endpoint{}
	for _, e := range httpapi.Endpoints() {
		endpoints[e.Key()] = e
	}
	for _, key := range slices.Sorted(maps.Keys(c.MFA.Guarded)) {
		code := c.MFA.Guarded[key]
		e, known := endpoints[key]
		switch why := rest.Unguardable(e); {
		case !known:
			refuse("mfa.guarded", fmt.Errorf("%q is no endpoint", key))
		case why != "":
			refuse("mfa.guarded", fmt.Errorf("%s %s", key, why))
		case code != user.ActionVideoKYC && mfa.BuiltIn(code):
			refuse("mfa.guarded", fmt.Errorf("%s is the action of other endpoints; choose another code", code))
		}
	}
	for _, key := range c.MFA.FourEyes {
		e, known := endpoints[key]
		switch why := rest.Solo(e); {
		case !known:
			refuse("mfa.four_eyes", fmt.Errorf("%q is no endpoint", key))
		case why != "":
			refuse("mfa.four_eyes", fmt.Errorf("%s %s", key, why))
		}
	}
	return faults
}

// readable returns an error if a file is named and cannot be read.
func readable(file string) error {
	if file == "" {
		return nil
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	return f.Close()
}
