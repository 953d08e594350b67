"""The privacy ledger: a database that counts what every release costs, and refuses what would exceed a cap.

    with Ledger("privacy.ledger", anchor="elsewhere/anchor.log") as ledger:    # or a postgresql:// URL and folder=...
        [batch] = ledger.open_accounts("rating", ["2026-W47"], Cap.of(epsilon=1, delta=1e-5, slack=3000))
        artefact = ledger.release(
            "2026-W47/item sums",                           # the key: one for each stage of a fit or update
            request=b"all that determines the release",     # is kept as a keyed digest
            charges=[Charge(batch, sensitivity**2, slack_of(dimension))],
            draw=lambda: (totals + noise.draw(n)).tobytes(),  # runs once the charge is anchored
            facts={"name": "item sums", "sensitivity": sensitivity, "dimension": dimension},
        )

`Ledger.release` is the only way to a draw. In this order it charges in one synced transaction, anchors the charge in
another place, draws, writes the artefact atomically, and enters the release. Asked again with the same key and request
it returns the stored bytes and charges nothing, in this process or after a crash. A key with another request is GF602,
one in progress elsewhere GF604, a charge above a cap GF601: nothing is drawn then. If the process dies between charge
and artefact, the charge is burned: it stays, and the same key pays again. What was published is adopted.

`Ledger.released(key, request=)` returns the artefact or None; `spent(account)` what an account spent of its cap;
`with_room(accounts, cost, slack)` the accounts that can pay (unit `user`: leave out the others, silently, and give
`release` the `stated` cost of the plan, since an entry is public and there may be nobody to charge). `state()` is
the head for the data to keep; `require_state(state, accounts)` refuses data that are older than the ledger or belong
to another one. `account(unit, name)` is the account of a batch or a person: a keyed hash, so names stay secret.

A cost is counted in ticks of 2^-49 zCDP: the square of the integer sensitivity, exactly, since sigma is 2^24. Slack
pays for the distance of integer noise from rounded real noise (`goodfence.ledger.costs`).
"""
