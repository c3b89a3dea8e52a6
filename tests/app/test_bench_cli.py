#!/usr/bin/env python3
"""
test_bench_cli.py BENCH MAKE_MODEL: the rows and the JSON of bitnet-bench on a generated model. The
tests check that every row computed something; they do not check the speed.
"""
import json
import os
import re
import subprocess
import sys
from xml.etree import ElementTree

from support.program_case import PROGRAM, ProgramCase, main, preload

ROOFLINE = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                        '../../docs/pictures/roofline.py')
ROW_KEYS = {'test', 'depth', 'batch', 'tokens_per_s', 'min', 'max', 'bytes_per_token',
            'percent_of_peak', 'checksum'}


class Bench(ProgramCase):
    def test_a_file_that_cannot_be_loaded_is_named_once(self):
        with open(self.model, 'rb') as file:
            data = file.read()
        for words, key in (([], b'general.architecture'), (['--scaling'], b'general.architecture'),
                           (['--tokenizer'], b'tokenizer.ggml.tokens')):
            path = self.write('no-key.gguf', data.replace(key, key[:-1] + b'?'))
            self.assertEqual(self.fails(3, path, *words).count(path), 1)

    def bench(self, *words):
        return json.loads(self.succeeds(self.model, '--json', '-r', '2', *words))

    def test_one_object_with_a_row_for_each_combination(self):
        result = self.bench('-p', '5,16', '-n', '4', '-d', '0,70', '-b', '1,3')
        self.assertEqual(result['model'], self.model)
        for key in ('device', 'isa', 'threads', 'kv_bytes_per_token'):
            self.assertIn(key, result)
        self.assertEqual([result[key] for key in ('head', 'skip', 'spec', 'sample')],
                         ['exact', 'on', 'off', False])
        for key in ('read_gb_per_s', 'int8_gmac_per_s', 'f32_gmac_per_s'):
            self.assertGreater(result[key], 0, key)
        self.assertGreater(result['first_eval_s'], result['load_s'])
        self.assertGreater(result['peak_rss_bytes'], os.path.getsize(self.model))
        self.assertGreaterEqual(result['peak_rss_bytes'], result['load_peak_bytes'])
        self.assertGreater(result['anon_bytes'], 0)
        self.assertGreater(result['file_bytes'], 0)
        rows = result['rows']
        self.assertEqual([(r['test'], r['depth'], r['batch']) for r in rows],
                         [(t, d, b) for t in ('pp5', 'pp16', 'tg4')
                          for d in (0, 70) for b in (1, 3)])
        for row in rows:
            self.assertLessEqual(ROW_KEYS, set(row))
            self.assertTrue(0 < row['min'] <= row['tokens_per_s'] <= row['max'], row)
            self.assertGreater(row['bytes_per_token'], 0)
            self.assertGreater(row['gmac_per_s'], 0)
            rate = (row['tokens_per_s'] * row['bytes_per_token'] if row['test'] == 'tg4'
                    else row['gmac_per_s'] * 1e9)
            if row['disturbed']:  # by other programs, or the weights are in a cache
                self.assertIsNone(row['percent_of_peak'])
                self.assertGreater(rate, 1.05 * row['peak_per_s'])
            else:
                self.assertAlmostEqual(row['percent_of_peak'] * row['peak_per_s'] / (100 * rate), 1)
            gaps = [row.get(f'token_gap_p{n}_s') for n in (50, 95, 99)]
            if row['test'] == 'tg4':
                self.assertEqual(gaps, sorted(gaps))
                # A step gives each sequence a token. The longest step is at least an average one. If
                # half of the steps took twice as long as one of the slowest run, the run would be slower.
                self.assertGreater(2 * gaps[2], row['batch'] / row['max'], row)
                self.assertLess(gaps[0], 2 * row['batch'] / row['min'], row)
            else:
                self.assertEqual(gaps, [None] * 3)
        self.assertEqual(len({r['checksum'] for r in rows}), len(rows))

    def test_checksums_do_not_depend_on_the_machine(self):
        words = ['-p', '20', '-n', '6', '-d', '65', '-b', '2']
        expected = [r['checksum'] for r in self.bench(*words)['rows']]
        for more in (['--isa', 'ref'], ['-t', '1'], ['-t', '1', '--pin'], ['--ubatch', '7']):
            rows = self.bench(*words, *more)['rows']
            self.assertEqual([r['checksum'] for r in rows], expected, more)
        sampled = self.bench(*words, '--sample')['rows']
        self.assertEqual(sampled[0]['checksum'], expected[0])
        self.assertNotEqual(sampled[1]['checksum'], expected[1])

    def test_approximations_are_named_in_the_output(self):
        words = ['-p', '20', '-n', '6', '-d', '130']
        exact = self.bench(*words)
        self.assertEqual((exact['head'], exact['kv']), ('exact', 'f16'))
        self.assertNotIn('8 bits', exact['device'])
        for option, message in (('--head', 'head at 8 bits'), ('--kv', 'KV cache at 8 bits')):
            near = self.bench(*words, option, 'q8')
            self.assertEqual(near[option[2:]], 'q8')
            self.assertIn(message, near['device'])
            sums = [[r['checksum'] for r in b['rows']] for b in
                    (exact, near, self.bench(*words, option, 'q8', '-t', '1', '--isa', 'ref'))]
            self.assertNotEqual(sums[0], sums[1])
            self.assertEqual(sums[1], sums[2])
        self.assertIn('int8 per token: ', exact['activations'])
        self.assertIn('as requested', self.bench(*words, '--activations', 'token')['activations'])
        self.assertLess(near['kv_bytes_per_token'], 0.6 * exact['kv_bytes_per_token'])
        text = self.succeeds(self.model, '-p', '0', '-n', '3', '-r', '1', '--explain', '--kv', 'q8', '--head',
                             'q8').decode()
        self.assertRegex(text, r'(?m)^KV cache +bytes, .* kB a token$')
        self.assertRegex(text, r'(?m)^head +1 row, rows at eight bits, approximate')

    def test_bytes_per_token_count_only_bytes_read(self):
        words = ['-p', '0', '-n', '8', '-r', '1']
        wide = self.make('wide.gguf', '--shape', '2,256,4,2,768,1024')
        def read(*more):
            return [row['bytes_per_token'] for row in
                    json.loads(self.succeeds(wide, '--json', *words, *more))['rows']]
        self.assertEqual(read(), read('-t', '1'))
        self.assertLess(read()[0], read('--skip', 'off')[0])
        shallow, deep = read('-d', '0,512')
        self.assertGreater(deep, shallow)
        one, four = read('-b', '1,4', '--skip', 'off')
        self.assertLess(four, one / 2)

    def test_a_table_for_people(self):
        text = self.succeeds(self.model, '-p', '8', '-n', '3', '-r', '1').decode()
        self.assertRegex(text, r'(?m)^\| pp8 +\| +0 \| +1 \| .* GMAC/s +([\d.]+ %|disturbed) ')
        self.assertRegex(text, r'(?m)^\| tg3 +\| +0 \| +1 \| .* GB/s +([\d.]+ %|disturbed) ')
        self.assertRegex(text, r'(?m)^\| pp8 .*\| first token after [\d.]+ s +\| [0-9a-f]{16} \|$')
        self.assertRegex(text, r'(?m)^\| tg3 .*\| p50 [\d.]+, p95 [\d.]+, p99 [\d.]+ ms +\| [0-9a-f]{16} \|$')
        self.assertEqual(len({len(line) for line in text.splitlines() if line.startswith('|')}), 1, text)

    def test_a_rate_above_the_peak_is_called_disturbed(self):
        """A library makes the clock run fast while the peaks are measured, so that they are far too low."""
        def run(*words):
            done = subprocess.run([PROGRAM, self.model, '-p', '8', '-n', '3', '-r', '1', '-t', '1', *words],
                                  env={**os.environ, 'LD_PRELOAD': preload('fast_clock'),
                                       'FAST_CLOCK_CALLS': '600'},
                                  stdout=subprocess.PIPE, timeout=300, check=True)
            return done.stdout.decode()
        rows = json.loads(run('--json'))['rows']
        self.assertEqual([(row['disturbed'], row['percent_of_peak']) for row in rows], [(True, None)] * 2)
        text = run('--profile')
        self.assertRegex(text, r'(?m)^\| pp8 .* GMAC/s disturbed +\|')
        self.assertRegex(text, r'(?m)^\| tg3 .* GB/s disturbed +\|')
        self.assertRegex(text, r'(?m)^\| head .* disturbed \|')
        for table in text.split('\n\n'):
            lines = {len(line) for line in table.splitlines() if line.startswith('|')}
            self.assertLessEqual(len(lines), 1, table)

    def test_a_profile_has_the_time_of_each_step(self):
        rows = self.bench('-p', '40', '-n', '3', '--profile')['rows']
        for row in rows:
            steps = {s['step']: s for s in row['profile']}
            self.assertAlmostEqual(sum(s['share'] for s in steps.values()), 1)
            self.assertGreater(steps['gate, up']['gmac_per_s'], 0)
            for name in ('q, k, v', 'attention', 'head'):
                self.assertNotEqual(steps[name]['percent_of_peak'], 0)  # null if it was disturbed
            self.assertIsNone(steps['norm, quantise']['percent_of_peak'])
            self.assertGreater(steps['head']['gb_per_s'], 0)
            self.assertIsNone(steps['norm, quantise']['gb_per_s'])
        text = self.succeeds(self.model, '-p', '8', '-n', '3', '-r', '1', '--profile').decode()
        self.assertRegex(text, r'(?m)^tg3: .* s$')
        self.assertRegex(text, r'(?m)^\| attention +\| .* % \| .*(%|disturbed) \|')

    def test_a_roofline_is_drawn_from_the_json(self):
        result = self.bench('-p', '40', '-n', '3', '-b', '1,2', '--profile')
        path = self.write('bench.json', json.dumps(result))
        done = subprocess.run([sys.executable, ROOFLINE, path, path], stdout=subprocess.PIPE,
                              timeout=60, check=True)
        picture = ElementTree.fromstring(done.stdout)
        names = [text.text for text in picture.iter('{http://www.w3.org/2000/svg}text')]
        for words in ('pp40, ', 'tg3, batch 2', 'attention of pp40', 'memory: ', 'floats: '):
            self.assertTrue(any(words in name for name in names), (words, names))
        marks = list(picture.iter('{http://www.w3.org/2000/svg}circle'))
        self.assertEqual(len(marks), 2 * (4 + 4))  # the rows, and the attention of each row
        for mark in marks:
            self.assertTrue(0 < float(mark.get('cx')) < float(picture.get('width')))
            self.assertTrue(0 < float(mark.get('cy')) < float(picture.get('height')))

    def test_explain_describes_each_row(self):
        text = self.succeeds(self.model, '-p', '8', '-n', '3', '-r', '1', '-t', '2',
                             '--explain').decode()
        self.assertRegex(text, r'(?m)^pp8\ntokens +8 at once, 512 at most\nthreads +. of ., as requested')
        self.assertRegex(text, r'(?m)^tg3\ntokens +1 at once')

    def test_scaling_measures_threads_and_batches(self):
        words = ('--scaling', '-p', '20', '-n', '3', '-r', '1', '-t', '2')
        rows = json.loads(self.succeeds(self.model, *words, '--json'))['scaling']
        self.assertEqual([(r['test'], r['threads'], r['batch']) for r in rows],
                         [('pp20', 1, 1), ('pp20', 2, 1), ('tg3', 1, 1), ('tg3', 2, 1),
                          ('tg3', 2, 2), ('tg3', 2, 4), ('tg3', 2, 8), ('tg3', 2, 16)])
        for one in (0, 2):
            self.assertEqual((rows[one]['speed_up'], rows[one]['efficiency']), (1, 1))
            self.assertEqual(rows[one]['checksum'], rows[one + 1]['checksum'])
        for row, base, n in ((rows[1], rows[0], 2), (rows[3], rows[2], 2), (rows[7], rows[3], 16)):
            self.assertAlmostEqual(row['speed_up'], row['tokens_per_s'] / base['tokens_per_s'], places=4)
            self.assertAlmostEqual(row['efficiency'], row['speed_up'] / n, places=4)
        for row in rows:
            self.assertEqual(row['low_efficiency'], row['batch'] == 1 and row['efficiency'] < 0.6, row)
            self.assertTrue(row['percent_of_peak'] is None or 0 < row['percent_of_peak'] <= 105, row)
        text = self.succeeds(self.model, *words).decode()
        self.assertRegex(text, r'(?m)^\| tg3 +\| +2 +\| +16 \| .* %')
        self.assertRegex(text, r'(?m)^\| pp20 +\| +1 +\| +1 \| .* 1\.00 \| +100\.0 % \| +([\d.]+ %|disturbed) \|$')
        self.assertEqual(len(json.loads(self.succeeds(self.model, *words, '-p', '0', '--json'))
                             ['scaling']), 6)
        # Five threads: on a machine with fewer cores the efficiency is low.
        words = ('--scaling', '-p', '0', '-n', '8', '-r', '1', '-t', '5', '--ubatch', '1')
        text = self.succeeds(self.model, *words).decode()
        low = re.findall(r'(?m)^warning: tg8 with (\d+) threads has an efficiency of ([\d.]+) %, below 60 %$', text)
        table = re.findall(r'(?m)^\| tg8 +\| +(\d+) \| +1 \| +[\d.]+ \| +[\d.]+ \| +([\d.]+) % \|', text)
        self.assertEqual(len(table), 5, text)
        self.assertTrue(all(float(efficiency) <= 60 for _, efficiency in low), text)
        self.assertEqual(low, [row for row in table if row in low or float(row[1]) < 59.95], text)
        self.fails(2, self.model, '--scaling', '-n', '0')
        self.fails(2, self.model, '--scaling', '--profile')
        self.fails(2, self.model, '--scaling', '--explain')
        self.fails(3, self.path('missing.gguf'), '--scaling')

    def test_the_tokenizer_is_measured_on_texts_of_several_lengths(self):
        model = self.make('words.gguf', '--vocab', 'llama3-like', '--n-vocab', '4000')
        result = json.loads(self.succeeds(model, '--tokenizer', '--json', '-r', '2'))
        self.assertEqual((result['tokenizer'], result['pre'], result['n_vocab']), ('gpt2', 'llama-bpe', 4000))
        rows = result['rows']
        self.assertEqual([(row['text'], row['bytes']) for row in rows],
                         [(text, n) for text in ('prose', 'code', 'long word', 'no UTF-8')
                          for n in (1 << 14, 1 << 17, 1 << 20)])
        for row in rows:
            self.assertTrue(0 < row['tokens'] <= row['bytes'], row)
            self.assertTrue(0 < row['min'] <= row['tokens_per_s'] <= row['max'], row)
            self.assertAlmostEqual(row['mb_per_s'] / (row['tokens_per_s'] * row['bytes'] / row['tokens'] / 1e6), 1)
        self.assertLess(rows[2]['tokens'], 0.7 * rows[2]['bytes'])  # words are merged
        self.assertEqual(len({row['checksum'] for row in rows}), len(rows))
        text = self.succeeds(model, '--tokenizer', '-r', '1').decode()
        self.assertEqual(re.findall(r'(?m)^\| .* ([0-9a-f]{16}) \|$', text), [row['checksum'] for row in rows])
        self.assertEqual(len({len(line) for line in text.splitlines() if line.startswith('|')}), 1, text)
        for more in ('--scaling', '--profile', '--explain', '--baseline=x'):
            self.assertIn('cannot be used together', self.fails(2, model, '--tokenizer', more))
        self.fails(3, self.path('missing.gguf'), '--tokenizer')

    def compared(self, code, *words):
        """The rows of a run with --json that ends with `code`."""
        done = self.run_program(self.model, '--json', '-r', '5', *words)
        self.assertEqual((done.returncode, done.stderr), (code, b''), words)
        return [row['baseline'] for row in json.loads(done.stdout)['rows']]

    def test_rows_are_compared_with_a_baseline(self):
        words = ('-p', '5', '-n', '4', '-b', '1,2')
        result = self.bench('-r', '5', *words)

        def baseline(rate, peak=None):
            """A file with these rates, whatever the machine measured."""
            rows = [dict(row, tokens_per_s=rate, median_low=rate, median_high=rate, peak_per_s=peak)
                    for row in result['rows']]
            return self.write('base.json', json.dumps(dict(result, rows=rows)))

        for row in self.compared(6, *words, '--baseline', baseline(1e12)):
            self.assertEqual((row['result'], row['same_output'], row['peak_ratio']), ('slower', True, None))
            self.assertEqual(row['tokens_per_s'], 1e12)
            self.assertTrue(0 < row['ratio_low'] <= row['ratio'] <= row['ratio_high'] < 0.95, row)
        for row in self.compared(0, *words, '--baseline', baseline(1e-6)):
            self.assertEqual(row['result'], 'faster')
        # The machine is now slower by more than the program, even if other programs delay each of its runs.
        for row in self.compared(0, *words, '--baseline', baseline(1e7, 1e18)):
            self.assertEqual(row['result'], 'same')
        result['rows'][0]['checksum'] = '0' * 16
        result['rows'].append({'test': 'tg5'})  # rows that are not measured again do not matter
        done = self.run_program(self.model, '-r', '5', *words, '--baseline', baseline(1e12))
        self.assertEqual((done.returncode, done.stderr), (6, b''))
        table = done.stdout.decode().split('Compared with')[1]
        self.assertRegex(table, r'(?m)^\| pp5 +\| .* \| +1000000000000\.00 \| .* \| differs \| slower \|$')
        self.assertRegex(table, r'(?m)^\| tg4 +\| +0 \| +2 \| .* \| same +\| slower \|$')
        with open('/dev/full', 'wb') as full:  # the table is lost: not the status of a complete comparison
            done = self.run_program(self.model, '-r', '5', *words, '--baseline', self.path('base.json'), stdout=full)
        self.assertEqual(done.returncode, 5)

    def test_a_model_file_truncated_in_use_is_reported(self):
        fifo = self.path('waits')
        self.reports_sigbus(fifo, self.model, '--baseline', fifo)

    def test_a_baseline_of_something_else_is_refused(self):
        words = ['-p', '5', '-n', '4', '-r', '5', '-t', '1']
        path = self.write('base.json', self.succeeds(self.model, '--json', *words))
        words += ['--baseline', path]
        other = self.make('other.gguf', '--seed', '2')
        self.assertIn('another model file', self.fails(2, other, *words))
        for more, key in ((('-t', '2'), 'device'), (('--skip', 'off'), 'skip'), (('--isa', 'ref'), 'isa'),
                          (('--spec', 'auto'), 'spec'), (('--sample',), 'sample'), (('--ubatch', '7'), 'ubatch'),
                          (('--head', 'f16'), 'head'), (('--activations', 'float'), 'activations')):
            said = self.fails(2, self.model, *words, *more)
            self.assertRegex(said, r'the baseline has "\w+" .*, but this run has ', more)
            self.assertTrue(f'"{key}"' in said or '"device"' in said, said)
        self.assertIn('no row tg4, depth 9, batch 1', self.fails(2, self.model, *words, '-p', '0', '-d', '9'))
        self.fails(2, self.model, *words, '--scaling')

    def test_a_comparison_needs_five_runs_on_both_sides(self):
        words = ['-p', '0', '-n', '4', '-t', '1']
        good = json.loads(self.succeeds(self.model, '--json', '-r', '5', *words))
        few = json.loads(self.succeeds(self.model, '--json', '-r', '4', *words))
        path = self.write('base.json', json.dumps(good))
        said = self.fails(2, self.model, *words, '--baseline', path, '-r', '4')
        self.assertIn('-r 4 is too few for --baseline', said)
        path = self.write('few.json', json.dumps(few))
        self.assertIn('measured with 4 runs', self.fails(2, self.model, *words, '--baseline', path))

    def test_a_broken_baseline_is_refused(self):
        words = ['-p', '0', '-n', '4', '-r', '5', '-t', '1']
        good = self.succeeds(self.model, '--json', *words)
        words += ['--baseline', self.path('broken.json')]

        def refused(data, code=2):
            self.write('broken.json', data)
            return self.fails(code, self.model, *words)

        for data in (b'', b'[]', b'3', good[:-3], good + b'x', b'[' * 100000, b'{"a":' * 100000, b'\xff\xfe',
                     b'{"rows":1e999}', b'{"a":1,"a":2}', b'\0' * 1000, b'{"' + b'\x1b[31m' * 9 + b'":1}'):
            self.assertIn('is not', refused(data))
        self.assertIn('has no "fingerprint"', refused(b'{}'))
        self.assertIn('has no "threads"', refused(good.replace(b'"threads"', b'"treads"')))
        self.assertNotIn('\x1b', refused(good.replace(b'"avx', b'"\\u001b[31m').replace(b'"skip":"on"',
                                                                                      b'"skip":"\\u001b[31m"')))
        for value in (None, 1, 'x', {}, [], [[]], [None], [{'test': None}], [{'test': 'tg4', 'depth': '0'}],
                      [{'test': 'tg4', 'depth': -1, 'batch': 1e300}]):
            self.assertIn('has no row tg4', refused(json.dumps(dict(json.loads(good), rows=value))))
        for change in ({'tokens_per_s': 0}, {'tokens_per_s': '1'}, {'tokens_per_s': -1},
                       {'tokens_per_s': 1e-308, 'median_low': 1e-308}, {'median_low': None},
                       {'median_high': 0.001}, {'median_low': 1e300}, {'peak_per_s': 'x'},
                       {'peak_per_s': -1}, {'peak_per_s': 1e-308}, {'checksum': 7}, {'checksum': 'x' * 1000}):
            value = json.loads(good)
            value['rows'][0].update(change)
            self.assertIn('the row tg4 of the baseline is broken', refused(json.dumps(value)), change)
        refused(b' ' * (17 << 20), code=5)
        self.fails(5, self.model, *words[:-1], self.path('missing.json'))
        self.fails(5, self.model, *words[:-1], self.folder.name)

    def test_wrong_arguments_are_exit_2(self):
        for words in ([], [self.model, 'two'], [self.model, '-p', '0', '-n', '0'],
                      [self.model, '-r', '0'], [self.model, '-p', 'x'], [self.model, '-b', '0'],
                      [self.model, '-b', '8', '--ubatch', '7', '-n', '1', '-p', '0'],
                      [self.model, '-t', '1000', '--pin', '-n', '1'],
                      [self.model, '--isa', 'best'], [self.model, '--head', 'q4'],
                      [self.model, '--kv', 'q4']):
            self.fails(2, *words)

    def test_files_that_are_not_models_are_exit_3(self):
        for path in self.models_that_do_not_load():
            self.fails(3, path)

    def test_help_lists_the_tests(self):
        text = self.succeeds('--help').decode()
        self.assertRegex(text, r'(?m)^ +-r, --runs N .* \[5\]$')  # fewer give no interval to compare
        for option in ('--prompt', '--generate', '--depth', '--batch', '--sample', '--isa'):
            self.assertIn(option, text)


if __name__ == '__main__':
    main()
