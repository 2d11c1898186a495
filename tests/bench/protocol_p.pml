/* The benchmark protocol P (see tests/protocol_p.py) for SPIN. R requests, O outputs, K drafts, depth D: -DR=3 ... */

#ifndef R
#define R 3
#define O 3
#define K 2
#define D 2
#endif
#define L 6
#define B 4
#define S 1
#define PC 4

#define NEW 0
#define WAIT 1
#define RUN 2
#define PRE 3
#define FIN 4

/* items: request 0 has (0,3,h0) and (6,2,h1); 1 has (1,3,h0); 2 has (1,3,h2) */
#define NI(r) ((r) == 0 -> 2 : 1)
#define OFF(r, i) ((r) == 0 -> ((i) == 0 -> 0 : 6) : 1)
#define LEN(r, i) (((r) == 0 && (i) == 1) -> 2 : 3)
#define HASH(r, i) ((r) == 0 -> (i) : ((r) == 1 -> 0 : 2))

byte st[R], c[R], p[R], o[R], d[R], refs[R];
byte fifo[3], fl;               /* freeable hashes, oldest first */
byte worker;                    /* a bit per hash */
byte qlen, enc[D], drop[D];
byte es[D * R], en[D * R], ek[D * R], et[D * R];  /* start, n (0: no entry), k + 1 (0: a chunk), stale */

byte acc[R];                    /* accepted drafts, while a completion is chosen */

/* SPIN's breadth-first search takes no hidden variables: there the scratch is part of the state, and wiped (-DBREADTH) */
#ifdef BREADTH
#define SCRATCH
#else
#define SCRATCH hidden
#endif
SCRATCH byte i, j, q, r, h, m, n, budget, known, lim, phase, stop, any, count, x;
SCRATCH byte xst[R], xc[R], xp[R], xd[R], xrefs[R], s0[R], ys[R], yn[R], yk[R], xfifo[3], xfl, xenc, xdrop;

inline clean() {
#ifdef BREADTH
    for (i : 0 .. R - 1) {
        xst[i] = 0; xc[i] = 0; xp[i] = 0; xd[i] = 0; xrefs[i] = 0; s0[i] = 0; ys[i] = 0; yn[i] = 0; yk[i] = 0
    }
    for (i : 0 .. 2) { xfifo[i] = 0 }
    i = 0; j = 0; q = 0; r = 0; h = 0; m = 0; n = 0; budget = 0; known = 0; lim = 0; phase = 0; stop = 0; any = 0;
    count = 0; x = 0; xfl = 0; xenc = 0; xdrop = 0
#else
    skip
#endif
}

inline referenced() {
    m = 0;
    for (j : 0 .. R - 1) {
        for (x : 0 .. NI(j) - 1) {
            if
            :: refs[j] & (1 << x) -> m = m | (1 << HASH(j, x))
            :: else
            fi
        }
    }
}

inline unref(rr, ii) {
    if
    :: refs[rr] & (1 << ii) ->
        refs[rr] = refs[rr] ^ (1 << ii);
        referenced();
        if
        :: !(m & (1 << HASH(rr, ii))) -> fifo[fl] = HASH(rr, ii); fl++
        :: else
        fi
    :: else
    fi
}

inline unref_all(rr) {
    for (i : 0 .. NI(rr) - 1) { unref(rr, i) }
}

inline make_stale(rr) {
    for (q : 0 .. D - 1) {
        if
        :: q < qlen && en[q * R + rr] > 0 -> et[q * R + rr] = 1
        :: else
        fi
    }
}

inline finish(rr) {
    unref_all(rr);
    st[rr] = FIN; c[rr] = 0; p[rr] = 0; o[rr] = 0; d[rr] = 0;
    make_stale(rr)
}

inline preempt(rr) {
    c[rr] = (c[rr] - p[rr] >= PC -> PC : 0);
    unref_all(rr);
    st[rr] = PRE; p[rr] = 0; d[rr] = 0;
    make_stale(rr)
}

inline xreferenced() {
    m = 0; count = 0;
    for (j : 0 .. R - 1) {
        for (x : 0 .. NI(j) - 1) {
            if
            :: (xrefs[j] & (1 << x)) && !(m & (1 << HASH(j, x))) -> m = m | (1 << HASH(j, x)); count++
            :: else
            fi
        }
    }
}

inline forget(at) {             /* takes place `at` out of the copied fifo */
    for (j : 0 .. 1) {
        if
        :: j >= at -> xfifo[j] = xfifo[j + 1]
        :: else
        fi
    }
    xfifo[2] = 0;
    xfl--
}

inline gate() {                 /* one item i of request r, for the window [xc, xc + n) */
    if
    :: OFF(r, i) < xc[r] + n && OFF(r, i) + LEN(r, i) > xc[r] && !(xrefs[r] & (1 << i)) ->
        h = HASH(r, i);
        q = 3;
        for (j : 0 .. 2) {
            if
            :: j < xfl && xfifo[j] == h -> q = j
            :: else
            fi
        }
        if
        :: q < 3 -> x = q; forget(x)
        :: else ->
            xreferenced();
            if
            :: m & (1 << h)
            :: else ->
                if
                :: count + xfl >= S ->
                    if
                    :: xfl == 0 -> n = (OFF(r, i) > xc[r] -> OFF(r, i) - xc[r] : 0); stop = 1
                    :: else -> xdrop = xdrop | (1 << xfifo[0]); x = 0; forget(x)
                    fi
                :: else
                fi;
                if
                :: !stop -> xenc = xenc | (1 << h)
                :: else
                fi
            fi
        fi;
        if
        :: !stop -> xrefs[r] = xrefs[r] | (1 << i)
        :: else
        fi
    :: else
    fi
}

inline serve() {                /* request r in a pass */
    known = L + o[r] + xp[r];
    n = 0;
    if
    :: xp[r] > 0 && xc[r] - xp[r] + 2 >= L + O
    :: else ->
        if
        :: known + xd[r] * K > xc[r] -> n = known + xd[r] * K - xc[r]
        :: else
        fi;
        if
        :: n > budget -> n = budget
        :: else
        fi
    fi;
    if
    :: n > 0 ->
        stop = 0;
        for (i : 0 .. NI(r) - 1) {
            if
            :: !stop -> gate()
            :: else
            fi
        }
    :: else
    fi;
    if
    :: n > 0 ->
        budget = budget - n; any = 1;
        ys[r] = xc[r]; yn[r] = n; yk[r] = 0;
        if
        :: xc[r] + n >= known -> yk[r] = xc[r] + n - known + 1; xp[r] = xp[r] + yk[r]; xd[r] = 1
        :: else
        fi;
        xst[r] = RUN; xc[r] = xc[r] + n
    :: else
    fi
}

inline schedule() {
    for (r : 0 .. R - 1) {
        xst[r] = st[r]; s0[r] = st[r]; xc[r] = c[r]; xp[r] = p[r]; xd[r] = d[r]; xrefs[r] = refs[r];
        ys[r] = 0; yn[r] = 0; yk[r] = 0
    }
    for (j : 0 .. 2) { xfifo[j] = fifo[j] }
    xfl = fl; xenc = 0; xdrop = 0; budget = B; any = 0;
    for (phase : 0 .. 1) {
        for (r : 0 .. R - 1) {
            if
            :: (phase == 0 && s0[r] == RUN) || (phase == 1 && (s0[r] == WAIT || s0[r] == PRE)) -> serve()
            :: else
            fi
        }
    }
    if
    :: any ->
        for (r : 0 .. R - 1) {
            st[r] = xst[r]; c[r] = xc[r]; p[r] = xp[r]; d[r] = xd[r]; refs[r] = xrefs[r];
            es[qlen * R + r] = ys[r]; en[qlen * R + r] = yn[r]; ek[qlen * R + r] = yk[r]; et[qlen * R + r] = 0
        }
        for (j : 0 .. 2) { fifo[j] = xfifo[j] }
        fl = xfl; enc[qlen] = xenc; drop[qlen] = xdrop; qlen++
    :: else                     /* disabled: the state stays as it was */
    fi
}

inline shift(rr, by) {
    for (q : 1 .. D - 1) {
        if
        :: q < qlen && en[q * R + rr] > 0 && !et[q * R + rr] ->
            es[q * R + rr] = (es[q * R + rr] > by -> es[q * R + rr] - by : 0)
        :: else
        fi
    }
}

inline complete() {
    worker = (worker | drop[0]) ^ drop[0];
    worker = worker | enc[0];
    for (r : 0 .. R - 1) {
        for (i : 0 .. NI(r) - 1) {
            if
            :: en[r] > 0 && OFF(r, i) < es[r] + en[r] && OFF(r, i) + LEN(r, i) > es[r] ->
                assert(worker & (1 << HASH(r, i)))
            :: else
            fi
        }
    }
    for (r : 0 .. R - 1) {
        if
        :: en[r] > 0 && st[r] != FIN && !et[r] ->
            stop = 0;
            if
            :: ek[r] > 0 ->
                if
                :: o[r] + acc[r] + 1 >= O -> finish(r); stop = 1
                :: else ->
                    lim = ek[r] - 1 - acc[r];
                    c[r] = c[r] - lim; p[r] = p[r] - ek[r]; o[r] = o[r] + acc[r] + 1;
                    shift(r, lim)
                fi
            :: else
            fi;
            if
            :: !stop ->
                for (i : 0 .. NI(r) - 1) {
                    if
                    :: OFF(r, i) + LEN(r, i) <= c[r] - p[r] -> unref(r, i)
                    :: else
                    fi
                }
            :: else
            fi
        :: else
        fi
    }
    for (q : 0 .. D - 1) {
        for (r : 0 .. R - 1) {
            if
            :: q + 1 < qlen ->
                es[q * R + r] = es[(q + 1) * R + r]; en[q * R + r] = en[(q + 1) * R + r];
                ek[q * R + r] = ek[(q + 1) * R + r]; et[q * R + r] = et[(q + 1) * R + r]
            :: else -> es[q * R + r] = 0; en[q * R + r] = 0; ek[q * R + r] = 0; et[q * R + r] = 0
            fi
        }
        if
        :: q + 1 < qlen -> enc[q] = enc[q + 1]; drop[q] = drop[q + 1]
        :: else -> enc[q] = 0; drop[q] = 0
        fi
    }
    qlen--;
    for (r : 0 .. R - 1) { acc[r] = 0 }
}

/* depth first: accepted drafts are chosen in an atomic sequence, whose states in between are not stored */
#define CHOOSE(r) \
    if \
    :: en[r] > 0 && st[r] != FIN && !et[r] && ek[r] > 0 -> \
        do \
        :: acc[r] + 1 < ek[r] -> acc[r]++ \
        :: break \
        od \
    :: else \
    fi

/* breadth first these would be stored, so there is one option per combination of accepted drafts, each one step */
#define MAY(r, a) ((en[r] > 0 && st[r] != FIN && !et[r] && ek[r] > 0) -> (a) < ek[r] : (a) == 0)
#define COMPLETE2(a0, a1) \
    :: d_step { qlen > 0 && MAY(0, a0) && MAY(1, a1) -> acc[0] = a0; acc[1] = a1; complete(); clean() }
#define COMPLETE3(a0, a1, a2) \
    :: d_step { \
        qlen > 0 && MAY(0, a0) && MAY(1, a1) && MAY(2, a2) -> \
        acc[0] = a0; acc[1] = a1; acc[2] = a2; complete(); clean() }
#if R > 2
#if K > 1
#define COMPLETE(a0, a1) COMPLETE3(a0, a1, 0) COMPLETE3(a0, a1, 1) COMPLETE3(a0, a1, 2)
#else
#define COMPLETE(a0, a1) COMPLETE3(a0, a1, 0) COMPLETE3(a0, a1, 1)
#endif
#else
#define COMPLETE(a0, a1) COMPLETE2(a0, a1)
#endif

#define COME_AND_GO(r) \
    :: d_step { st[r] == NEW -> st[r] = WAIT } \
    :: d_step { st[r] == WAIT || st[r] == RUN || st[r] == PRE -> finish(r); clean() } \
    :: d_step { st[r] == RUN -> preempt(r); clean() }

active proctype scheduler() {
end:
    do
    COME_AND_GO(0)
    COME_AND_GO(1)
#if R > 2
    COME_AND_GO(2)
#endif
    :: d_step { qlen < D -> schedule(); clean() }
#ifdef BREADTH
    COMPLETE(0, 0)
    COMPLETE(0, 1)
    COMPLETE(1, 0)
    COMPLETE(1, 1)
#if K > 1
    COMPLETE(0, 2)
    COMPLETE(1, 2)
    COMPLETE(2, 0)
    COMPLETE(2, 1)
    COMPLETE(2, 2)
#endif
#else
    :: atomic {
        qlen > 0 ->
        CHOOSE(0);
        CHOOSE(1);
#if R > 2
        CHOOSE(2);
#endif
        d_step { complete(); clean() }
    }
#endif
    od
}
