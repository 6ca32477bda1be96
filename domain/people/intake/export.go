package intake

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"castellan/domain/account/user"
	"castellan/domain/kit/fault"
	"castellan/domain/proof/totp"
)

// exportPage is the number of accounts that are read at once.
const exportPage = 500

// Export writes the accounts to w in the castellan format, newest first, and returns their number. A placeholder in
// place of a phone number is left out, and so are the accounts of development. secrets adds the stored password hash,
// unless the password must be reset, and the secret of the authenticator.
func (s *Service) Export(ctx context.Context, w io.Writer, secrets bool) (n int64, err error) {
	out := bufio.NewWriter(w)
	for after := ""; ; {
		users, err := s.Users.List(ctx, after, exportPage)
		if err != nil {
			return n, err
		}
		ids := make([]string, len(users))
		for i, u := range users {
			ids[i] = u.ID
		}
		external, err := s.Store.ExternalIDs(ctx, ids)
		if err != nil {
			return n, err
		}
		for _, u := range users {
			after = u.ID
			if u.Demo {
				continue
			}
			text, err := s.exported(ctx, u, external[u.ID], secrets)
			if err != nil {
				return n, err
			}
			if _, err := out.Write(append(text, '\n')); err != nil {
				return n, fmt.Errorf("write the export: %w", err)
			}
			n++
		}
		if len(users) < exportPage {
			break
		}
	}
	if err := out.Flush(); err != nil {
		return n, fmt.Errorf("write the export: %w", err)
	}
	return n, nil
}

// exported returns the line of an account.
func (s *Service) exported(ctx context.Context, u user.User, externalID string, secrets bool) ([]byte, error) {
	l := line{ExternalID: externalID, Email: u.Email, EmailVerified: u.EmailVerified, Name: u.Name, Surname: u.Surname,
		Language: u.Language, Status: string(u.Status)}
	if number := u.Reachable(); number != "" {
		l.CountryCode, l.Phone = u.CountryCode, strings.TrimPrefix(number, "+"+u.CountryCode)
	}
	if secrets {
		stored, err := s.Users.Secret(ctx, u.ID)
		if err != nil {
			return nil, err
		}
		if stored.Hash != "" && !u.MustReset {
			if l.Hash, err = json.Marshal(stored.Hash); err != nil {
				return nil, fmt.Errorf("export: %w", err)
			}
		}
		if u.TOTP {
			d, err := s.TOTP.Get(ctx, u.ID)
			if fault.CodeOf(err) == fault.TOTPNotDefined { // removed meanwhile
				return json.Marshal(l)
			}
			if err != nil {
				return nil, err
			}
			secret, err := totp.Reveal(s.Ring, d)
			if err != nil {
				return nil, err
			}
			l.TOTP = totp.FormatSecret(secret)
		}
	}
	return json.Marshal(l)
}
